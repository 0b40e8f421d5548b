#include "runtime/planning/auto_plan.hpp"

#include "config/base/clock.hpp"
#include "config/base/error.hpp"
#include "config/base/user_cache.hpp"
#include "plans/cost/plan_problem.hpp"
#include "plans/search/staleness.hpp"
#include "plans/simulate/simulator.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/planner/staleness_table.hpp"
#include "runtime/planner/user_plan.hpp"
#include "runtime/planning/device_memory.hpp"
#include "runtime/planning/machine_hardware.hpp"
#include "runtime/planning/measure_in_child.hpp"
#include "runtime/planning/resolve_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

bool has_cached_hardware(const std::string& kind) {
  const auto cached = cached_hardware_file(kind);
  std::error_code ignored;
  return !cached.empty() && fs::exists(cached, ignored);
}

MachineProfile cached_profile(const std::string& kind) {
  const auto cached = cached_hardware_file(kind).string();
  return {.hardware = plans::load_hardware(cached),
          .table = plans::load_profile(cached)};
}

/// A machine and a line on the source of its numbers.
struct KnownMachine {
  MachineProfile profile;
  std::string source;
};

KnownMachine quickly_measured(const Settings& settings,
                              const plans::Workflow& workflow,
                              const std::map<std::string, ModelShape>& shapes,
                              const plans::Cluster& cluster,
                              MeasuredNow measured) try {
  const Stopwatch watch;
  const auto kind = device_kind(settings);
  KnownMachine known{
    .profile = kind == "gpu" ? measure_in_child(settings, user_program())
                             : measure_machine(settings, workflow, shapes,
                                               cluster, quick_profile_effort),
    .source = {}};
  const double spent_s = watch.seconds();
  const bool kept
    = measured == MeasuredNow::is_kept && cache_profile(known.profile, kind);
  known.source = fmt::format(
    "numbers of this machine: measured now in {:.1f} s{}; `troupe profile` "
    "measures longer",
    spent_s,
    kept ? " for " + cached_hardware_file(kind).string() : ", not kept");
  return known;
} catch (const FailureError& error) {
  KnownMachine known{.profile = {.hardware = machine_hardware(
                                   settings, cluster.devices_per_node),
                                 .table = {}},
                     .source = {}};
  known.source
    = fmt::format("numbers of the shipped {}: measuring this machine "
                  "failed: {}",
                  known.profile.hardware.name, error.what());
  return known;
}

KnownMachine known_machine(const Settings& settings,
                           const plans::Workflow& workflow,
                           const std::map<std::string, ModelShape>& shapes,
                           const plans::Cluster& cluster,
                           MeasuredNow measured) {
  const auto kind = device_kind(settings);
  if (!has_cached_hardware(kind))
    return quickly_measured(settings, workflow, shapes, cluster, measured);
  const auto file = cached_hardware_file(kind).string();
  KnownMachine known{.profile = cached_profile(kind), .source = {}};
  known.source = plans::of_another_machine(known.profile.hardware, file,
                                           machine_name(settings));
  if (known.source.empty())
    known.source = "numbers of this machine: " + file;
  return known;
}

} // namespace

plans::PlanProblem run_problem(const Settings& settings,
                               const plans::Workflow& workflow,
                               const std::map<std::string, ModelShape>& shapes,
                               const plans::Cluster& cluster,
                               const MachineProfile& machine) {
  plans::PlanProblem problem;
  problem.hardware = machine.hardware;
  problem.profile = machine.table;
  problem.workflow = plans::in_one_round(workflow);
  problem.cluster = cluster;
  problem.shapes = shapes;
  plans::apply_settings(
    problem, settings, device_memory_bytes(settings, cluster.devices_per_node));
  const double longest = workflow.samples_are_prompts
                           ? settings.rollout.max_new_tokens
                           : settings.data.max_tokens;
  problem.lengths = plans::Lengths(
    workflow.samples_are_prompts ? settings.data.max_prompt_tokens : 0.0,
    longest, longest);
  problem.for_run = true;
  return problem;
}

std::optional<plans::PlanProblem>
profiled_problem(const Settings& settings, const plans::Workflow& workflow,
                 const std::map<std::string, ModelShape>& shapes,
                 const plans::Cluster& cluster) {
  const auto kind = device_kind(settings);
  if (!has_cached_hardware(kind))
    return std::nullopt;
  return run_problem(settings, workflow, shapes, cluster, cached_profile(kind));
}

std::vector<double> predicted_task_seconds(
  const Settings& settings, const plans::Workflow& workflow,
  const std::map<std::string, ModelShape>& shapes,
  const plans::ExecutionPlan& plan, const plans::StepGraph& graph) {
  std::optional<plans::PlanProblem> problem;
  try {
    problem = profiled_problem(settings, workflow, shapes, plan.cluster);
  } catch (const ConfigError&) { // perf/predicted_step_s logs the warning
  }
  if (!problem)
    problem = run_problem(
      settings, workflow, shapes, plan.cluster,
      {.hardware = machine_hardware(settings, plan.cluster.devices_per_node),
       .table = {}});
  const plans::CostModel costs(*problem);
  return plans::predict_seconds(*problem, costs,
                                plans::with_rooms(*problem, plan),
                                plans::replicas_of(workflow, plan), graph)
    .all;
}

std::string print(const MachineProfile& profile) {
  return plans::print(profile.hardware) + plans::print(profile.table);
}

bool cache_profile(const MachineProfile& profile,
                   const std::string& device_kind) try {
  const auto cached = cached_hardware_file(device_kind);
  if (cached.empty())
    return false;
  std::error_code ignored;
  fs::create_directories(cached.parent_path(), ignored);
  if (!fs::is_directory(cached.parent_path(), ignored))
    return false;
  replace_file(cached, print(profile));
  return true;
} catch (const FailureError&) {
  return false; // a cache that cannot be written counts as none
}

fs::path cached_hardware_file(const std::string& device_kind) {
  const auto cache = user_cache_folder();
  const auto* const name
    = device_kind == "gpu" ? "hardware_gpu.yaml" : "hardware.yaml";
  return cache.empty() ? fs::path{} : cache / name;
}

ChosenPlan search_for_run(const Settings& settings,
                          const plans::Workflow& workflow,
                          const std::map<std::string, ModelShape>& shapes,
                          const plans::Cluster& cluster, MeasuredNow measured,
                          const std::optional<PlanLags>& lags_so_far) {
  const auto machine
    = known_machine(settings, workflow, shapes, cluster, measured);
  const auto problem
    = run_problem(settings, workflow, shapes, cluster, machine.profile);
  const plans::CostModel costs(problem);
  plans::SearchOptions options{.chunks = plans::ChunkSearch::afterwards};
  if (lags_so_far)
    options.lag = *lags_so_far;
  auto searched = plans::find_plan_within(
    problem, costs, options, lags_so_far ? 0 : max_lag_of(settings));
  auto& found = searched.chosen;
  const auto buys = staleness_lines(searched, problem);
  ChosenPlan chosen{.plan = std::move(found.best.plan),
                    .name = found.best.origin + " (chosen by auto)",
                    .why = {machine.source}};
  chosen.why.push_back("predicted: " + plans::summary(found));
  std::ranges::move(plans::next_best_lines(found),
                    std::back_inserter(chosen.why));
  std::ranges::copy(buys, std::back_inserter(chosen.why));
  return chosen;
}

} // namespace troupe::runtime
