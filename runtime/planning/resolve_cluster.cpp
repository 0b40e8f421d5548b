#include "runtime/planning/resolve_cluster.hpp"

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "config/base/own_address.hpp"
#include "net/base/gpus.hpp"
#include "plans/check/plan_check.hpp"
#include "plans/presets/presets.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/launch/job_environment.hpp"
#include "runtime/launch/launch_command.hpp"
#include "runtime/planner/user_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

namespace troupe::runtime {

namespace fs = std::filesystem;
using plans::Cluster;

std::string device_kind(const Settings& settings) {
  const std::string& asked = settings.cluster.device;
  if (asked == "cpu")
    return asked;
  return device_kind_among(settings, net::find_gpus());
}

std::string device_kind_among(const Settings& settings,
                              const net::GpuReport& gpus) {
  const std::string& asked = settings.cluster.device;
  if (asked == "cpu" || !gpus.names.empty())
    return asked == "auto" ? "gpu" : asked;
  if (asked == "auto" && !gpus.is_refused)
    return "cpu";
  const std::string possible = gpus.is_refused ? "cpu" : "cpu or auto";
  throw ConfigError(
    {.place = place_of(settings, "cluster.device"),
     .path = "cluster.device",
     .expected = possible + " on this machine (" + gpus.why_none + ")",
     .got = "'" + asked + "'",
     .hint = "cluster.device=cpu"});
}

namespace {

/// Returns one device and one worker per GPU, or one CPU slot.
Cluster default_cluster(const Settings& settings) {
  Cluster cluster;
  if (device_kind(settings) == "gpu") {
    cluster.devices_per_node
      = static_cast<std::uint32_t>(net::find_gpus().names.size());
    cluster.workers_per_node = cluster.devices_per_node;
  }
  return cluster;
}

std::uint32_t cluster_number(const std::optional<int>& setting,
                             std::uint32_t otherwise) {
  return setting ? static_cast<std::uint32_t>(*setting) : otherwise;
}

/// Returns the cluster of the settings; `auto` becomes what this machine has.
Cluster settings_cluster(const Settings& settings) {
  const Cluster otherwise = default_cluster(settings);
  Cluster cluster;
  cluster.nodes = cluster_number(
    settings.cluster.nodes, std::max(otherwise.nodes, nodes_of_this_job()));
  cluster.devices_per_node = cluster_number(settings.cluster.devices_per_node,
                                            otherwise.devices_per_node);
  // more workers than devices would leave some without work
  cluster.workers_per_node = cluster_number(
    settings.cluster.workers_per_node,
    std::min(otherwise.workers_per_node, cluster.devices_per_node));
  launcher_of(settings, cluster.nodes);
  check_workers(settings, cluster);
  return cluster;
}

/// Returns the plan on the cluster that it names, else on that of the settings.
plans::ExecutionPlan on_its_cluster(const Settings& settings,
                                    const UserPlan& written) {
  auto plan = written.plan;
  if (!written.has_cluster) {
    plan.cluster = settings_cluster(settings);
    return plan;
  }
  plan.cluster = cluster_of(settings, written);
  launcher_of(settings, plan.cluster.nodes);
  return plan;
}

std::optional<plans::ExecutionPlan> reusable_plan(const fs::path& old_plan,
                                                  const Cluster& cluster) {
  std::error_code ignored;
  if (old_plan.empty() || !fs::exists(old_plan, ignored))
    return std::nullopt;
  auto plan = plans::parse_plan(read_file(old_plan), old_plan.string());
  if (plan.cluster.num_devices() != cluster.num_devices())
    return std::nullopt;
  plan.cluster = cluster;
  return plan;
}

ChosenPlan
automatic_plan(const Settings& settings, const plans::Workflow& workflow,
               const fs::path& old_plan,
               const std::function<bool(const plans::ExecutionPlan&)>& fits,
               const std::function<ChosenPlan(const Cluster&)>& search) {
  const auto cluster = settings_cluster(settings);
  if (auto old = reusable_plan(old_plan, cluster); old && fits(*old))
    return {std::move(*old), "of the run so far", {}};
  auto single = plans::preset("single", workflow, cluster);
  if (search && (cluster.num_devices() > 1 || !fits(single)))
    return search(cluster);
  // use all devices if possible; on one device both are the same
  auto all = plans::preset("data_parallel", workflow, cluster);
  if (cluster.num_devices() == 1 || (!fits(all) && fits(single)))
    return {std::move(single), "single (chosen by auto)", {}};
  return {std::move(all), "data_parallel (chosen by auto)", {}};
}

ChosenPlan runnable_preset(const Settings& settings,
                           const plans::Workflow& workflow,
                           const PresetMaker& make_preset) {
  const auto cluster = settings_cluster(settings);
  const auto make = [&] {
    return make_preset ? make_preset(cluster)
                       : plans::preset(settings.plan, workflow, cluster);
  };
  return {named_by_user(settings, make), settings.plan, {}};
}

/// Links between hosts may be down for longer than a process on one host is
/// silent.
int silence_limit_s(const ClusterSettings& cluster, std::uint32_t nodes) {
  const bool is_one_host
    = nodes == 1 && (cluster.bind == "auto" || is_loopback(cluster.bind));
  const std::chrono::seconds limit
    = is_one_host ? defaults::dead_after : defaults::dead_after_between_hosts;
  return static_cast<int>(limit.count());
}

} // namespace

ChosenPlan
choose_plan(const Settings& settings, const plans::Workflow& workflow,
            const fs::path& old_plan,
            const std::function<bool(const plans::ExecutionPlan&)>& fits,
            const PresetMaker& make_preset,
            const std::function<ChosenPlan(const Cluster&)>& search) {
  if (const auto written = user_plan(settings))
    return {on_its_cluster(settings, *written), written->name, {}};
  if (settings.plan == "auto")
    return automatic_plan(settings, workflow, old_plan, fits, search);
  if (plans::is_preset(settings.plan))
    return runnable_preset(settings, workflow, make_preset);
  refuse_plan_name(settings);
}

Settings with_cluster(Settings settings, const Cluster& cluster) {
  settings.cluster.device = device_kind(settings);
  settings.cluster.nodes = static_cast<int>(cluster.nodes);
  settings.cluster.devices_per_node
    = static_cast<int>(cluster.devices_per_node);
  settings.cluster.workers_per_node
    = static_cast<int>(cluster.workers_per_node);
  if (!settings.cluster.silence_s)
    settings.cluster.silence_s
      = silence_limit_s(settings.cluster, cluster.nodes);
  return settings;
}

} // namespace troupe::runtime
