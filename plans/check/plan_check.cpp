#include "plans/check/plan_check.hpp"

#include "config/base/error.hpp"
#include "plans/check/host_limits.hpp"
#include "plans/check/memory_hint.hpp"
#include "plans/check/plan_limits.hpp"
#include "plans/check/planned_memory.hpp"
#include "plans/check/too_full.hpp"
#include "plans/plan/plan_names.hpp"
#include "plans/plan/strategy_rules.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/weights/residency.hpp"
#include "plans/workflow/user_placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace troupe::plans {

namespace {

using internal::memory_hint;
using internal::why_no_chunks;
using internal::why_no_context;
using internal::why_no_offload;
using internal::why_no_second;
using internal::why_no_servers;
using internal::why_no_slices;

bool are_disjoint(const std::vector<Rank>& a, const std::vector<Rank>& b) {
  return std::ranges::none_of(
    a, [&](Rank rank) { return std::ranges::find(b, rank) != b.end(); });
}

std::string quantity(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Returns "d4t2 on 8 devices": `strategy` with this many ranks for samples.
std::string with_ranks(Strategy strategy, std::uint32_t ranks) {
  strategy.dp = ranks * strategy.cp;
  strategy.zero = strategy.dp == 1 ? Zero::none : strategy.zero;
  return fmt::format("{} on {}", to_string(strategy),
                     quantity(strategy.num_devices(), "device"));
}

class PlanChecker {
public:
  explicit PlanChecker(const CheckContext& context)
    : context_(context),
      workflow_(context.workflow),
      plan_(context.plan) {}

  PlanReport run() {
    check_cluster();
    if (plan_.cluster.num_devices() == 0)
      return std::move(report_);
    check_names();
    for (const auto& call : workflow_.calls)
      check_call(call);
    check_mini_batches();
    check_lags();
    if (report_.ok())
      check_whole();
    if (report_.ok()) {
      count_snapshots();
      report_.servers = server_bytes(workflow_, plan_, context_.shapes,
                                     context_.dtypes, context_.sizes);
    }
    return std::move(report_);
  }

private:
  void wrong(std::string path, const std::string& expected,
             const std::string& got, const std::string& hint = {}) {
    refuse(std::move(path), expectation(expected, got, hint));
  }
  void refuse(std::string path, std::string message) {
    report_.errors.push_back({std::move(path), std::move(message)});
  }
  void warn(std::string text) {
    report_.warnings.push_back(std::move(text));
  }

  void count_snapshots() {
    const auto is_unknown = [&](const Role& role) {
      return role.changes() && !context_.shapes.contains(role.name);
    };
    if (std::ranges::none_of(workflow_.roles, is_unknown))
      report_.snapshots = snapshot_bytes(workflow_, plan_, context_.shapes);
  }

  void check_cluster() {
    const auto& cluster = plan_.cluster;
    if (cluster.num_devices() == 0)
      wrong("cluster", "at least 1 device", "0");
    else if (cluster.workers_per_node == 0
             || cluster.workers_per_node > cluster.devices_per_node)
      wrong("cluster.workers_per_node",
            fmt::format("1 to {}, one worker a device at most",
                        cluster.devices_per_node),
            std::to_string(cluster.workers_per_node),
            cluster.workers_per_node == 0
              ? "1"
              : std::to_string(cluster.devices_per_node));
  }

  void check_names() {
    std::vector<std::string> calls, replicas, roles;
    for (const auto& call : workflow_.calls) {
      calls.push_back(call.name);
      if (!call.role.empty())
        replicas.push_back(call.role + "@" + call.name);
    }
    for (const auto& role : workflow_.roles)
      roles.push_back(role.name);
    for (const auto& [name, placement] : plan_.calls)
      check_name("calls", "call", name, calls);
    for (const auto& [name, keep] : plan_.replicas)
      check_name("replicas", "replica", name, replicas);
    for (const auto& [name, lag] : plan_.lag)
      check_name("lag", "call", name, calls);
    for (const auto& [name, memory] : plan_.roles) {
      check_name("roles", "role", name, roles);
      const auto why = why_no_offload(context_, name, memory);
      if (!why.empty())
        refuse(fmt::format("roles.{}.offload", name), why);
    }
  }

  void check_name(std::string_view section, std::string_view what,
                  const std::string& name,
                  const std::vector<std::string>& valid) {
    if (std::ranges::find(valid, name) != valid.end())
      return;
    const auto near = quoted_nearest(name, valid);
    wrong(fmt::format("{}.{}", section, name),
          fmt::format("a {} of workflow {}", what, workflow_.name),
          "'" + name + "'",
          near.empty() ? fmt::format("one of {}", fmt::join(valid, ", "))
                       : near);
    report_.errors.back().wrong_name = true;
  }

  void check_call(const Call& call) {
    const auto path = "calls." + call.name;
    const auto found = plan_.calls.find(call.name);
    if (found == plan_.calls.end())
      return wrong(path, "devices for every call of workflow " + workflow_.name,
                   "nothing",
                   fmt::format("{}: {}", call.name, placement_example(call)));
    const auto& placement = found->second;
    for (const auto& [key, why] :
         {std::pair{".chunks", why_no_chunks(context_, call, placement)},
          std::pair{".slices", why_no_slices(context_, call, placement)},
          std::pair{"", why_no_servers(context_, call, placement)},
          std::pair{"", why_no_second(context_, call, placement)}})
      if (!why.empty())
        refuse(path + key, why);
    const auto no_instances = why_no_instances(call, placement);
    if (!no_instances.empty())
      return refuse(path, no_instances);
    if (call.kind == CallKind::function)
      check_function(path, placement);
    else if (check_devices(path, placement)
             && check_strategy(path, call, placement))
      check_batch(path, call, placement);
  }

  std::string placement_example(const Call& call) const {
    if (call.kind == CallKind::function)
      return "{devices: host}";
    const auto last = plan_.cluster.num_devices() - 1;
    return last == 0
             ? "{devices: 0, strategy: d1}"
             : fmt::format("{{devices: 0-{}, strategy: d{}}}", last, last + 1);
  }

  void check_function(const std::string& path, const Placement& placement) {
    if (!placement.devices.empty())
      wrong(path + ".devices", "host, where functions run",
            print_devices(placement.devices), "host");
    else if (placement.strategy != Strategy{})
      wrong(path + ".strategy", "none of a function",
            to_string(placement.strategy), "leaving it out");
  }

  bool check_devices(const std::string& path, const Placement& placement) {
    const auto count = plan_.cluster.num_devices();
    const auto& devices = placement.devices;
    const std::set each(devices.begin(), devices.end());
    const auto got = print_devices(devices);
    const auto before = report_.errors.size();
    const auto valid
      = count == 1 ? std::string("0") : fmt::format("0-{}", count - 1);
    if (devices.empty())
      wrong(path + ".devices", "devices for a call with weights", "host",
            valid);
    else if (std::ranges::adjacent_find(devices, std::ranges::greater_equal{})
             != devices.end())
      wrong(path + ".devices", "devices that ascend, each once", got,
            print_devices({each.begin(), each.end()}));
    else if (devices.back().value >= count)
      wrong(
        path + ".devices",
        fmt::format("devices of the cluster, which has {} ({})", count, valid),
        got, valid);
    return report_.errors.size() == before;
  }

  bool check_strategy(const std::string& path, const Call& call,
                      const Placement& placement) {
    const auto& strategy = placement.strategy;
    const auto count = static_cast<std::uint32_t>(placement.devices.size());
    const auto known = context_.shapes.find(call.role);
    const auto shape
      = known == context_.shapes.end() ? ModelShape{} : known->second;
    if (strategy.num_devices() != count) {
      wrong(path + ".strategy",
            fmt::format("a strategy for {} ({})", quantity(count, "device"),
                        print_devices(placement.devices)),
            fmt::format("{}, which is for {}", to_string(strategy),
                        strategy.num_devices()),
            to_string(nearest_strategy(strategy, count, shape)));
      return false;
    }
    auto why = why_illegal(strategy, shape);
    if (why.empty() && call.kind == CallKind::generate)
      why = why_not_decoding(strategy);
    if (why.empty())
      why = why_no_context(context_, call, placement);
    if (!why.empty())
      refuse(path + ".strategy", why);
    return why.empty();
  }

  /// Returns the fewest samples in an optimizer step or a pass of `call`.
  std::uint32_t least_samples(const Call& call) const {
    const auto& sizes = context_.sizes;
    if (call.kind != CallKind::train)
      return sizes.samples_per_step;
    const auto groups = sizes.samples_per_step / std::max(1u, sizes.group_size);
    return groups / std::max(1u, sizes.mini_batches) * sizes.group_size;
  }

  void check_batch(const std::string& path, const Call& call,
                   const Placement& placement) {
    const auto least = least_samples(call);
    const auto ranks = placement.strategy.sample_ranks();
    if (least > 0 && ranks > least)
      wrong(
        path + ".strategy",
        fmt::format("at most d{}, as many dp ranks as a {} has samples", least,
                    call.kind == CallKind::train ? "mini-batch" : "step"),
        to_string(placement.strategy), with_ranks(placement.strategy, least));
    if (placement.micro_batch_tokens < 0)
      wrong(path + ".micro_batch_tokens", "a number >= 0",
            std::to_string(placement.micro_batch_tokens), "leaving it out");
    if (placement.micro_batches < 0)
      wrong(path + ".micro_batches", "a number >= 0",
            std::to_string(placement.micro_batches), "leaving it out");
    if (placement.micro_batches > 0 && placement.micro_batch_tokens > 0)
      wrong(path + ".micro_batches", "micro_batches or micro_batch_tokens",
            "both", "leaving one out");
    const auto a_rank = std::max(1u, least / std::max(1u, ranks));
    if (least > 0 && placement.micro_batches > static_cast<int>(a_rank))
      wrong(
        path + ".micro_batches",
        fmt::format("at most {}, the samples of a device at a time", a_rank),
        std::to_string(placement.micro_batches), std::to_string(a_rank));
  }

  void check_mini_batches() {
    const auto& sizes = context_.sizes;
    const auto groups = sizes.samples_per_step / std::max(1u, sizes.group_size);
    if (sizes.mini_batches == 0 || sizes.mini_batches > groups)
      wrong("algorithm.mini_batches",
            fmt::format("1 to {}, the rows of a step", groups),
            std::to_string(sizes.mini_batches),
            sizes.mini_batches == 0 ? "1" : std::to_string(groups));
  }

  void check_lags() {
    for (const auto& [name, lag] : plan_.lag) {
      const auto* call = workflow_.find_call(name);
      if (!call || lag == 0)
        continue;
      const auto path = "lag." + name;
      if (const auto why = why_no_lag(*call); !why.empty())
        wrong(path, "no lag, for " + why, std::to_string(lag),
              "leaving it out");
      else if (lag > max_plan_lag)
        wrong(path, fmt::format("0 to {}", max_plan_lag), std::to_string(lag),
              "1");
    }
  }

  std::string why_no_lag(const Call& call) const {
    if (call.kind == CallKind::function)
      return call.name + " has no weights";
    if (call.kind == CallKind::train)
      return call.name + " makes the newest version";
    if (!workflow_.role(call.role).changes())
      return call.role + " is never trained";
    return "";
  }

  /// Runs the checks that need a plan whose parts are valid.
  void check_whole() {
    try {
      const auto replicas = replicas_of(workflow_, plan_);
      check_drops(workflow_, plan_, replicas);
      const auto graph = make_step_graph(workflow_, plan_, replicas);
      warn_lags(replicas);
      warn_idle_devices();
      check_memory(replicas);
      check_hosts(replicas);
    } catch (const PlanError& error) {
      const std::string text = error.what();
      const auto colon = text.find(": ");
      refuse(text.substr(0, colon), text.substr(colon + 2));
    }
  }

  void warn_lags(const Replicas& replicas) {
    for (const auto& call : workflow_.calls) {
      const auto lag = plan_.lag_of(call.name);
      if (plan_.most_lag_of(call.name) > 0 && !context_.corrects_for_lag)
        warn(fmt::format(
          "{}: the loss does not correct for samples of an older version; try "
          "algorithm.old_logprobs: rollout or algorithm.correction",
          lag > 0 ? "lag." + call.name : "calls." + call.name + ".slices"));
      if (lag == 0)
        continue;
      const auto& home = replicas[replicas.home(call.role)];
      const auto& devices = plan_.calls.at(call.name).devices;
      if (!are_disjoint(devices, home.devices))
        warn(fmt::format("lag.{}: buys no overlap, {} shares devices with the "
                         "training of {} (devices {})",
                         call.name, call.name, call.role,
                         print_devices(home.devices)));
      else if (lag > 1)
        warn(fmt::format("lag.{}: {} overlaps no more than 1, a replica holds "
                         "one version",
                         call.name, lag));
    }
  }

  void warn_idle_devices() {
    std::set<Rank> used;
    for (const auto& [name, placement] : plan_.calls)
      used.insert(placement.devices.begin(), placement.devices.end());
    std::vector<Rank> idle;
    for (std::uint32_t rank = 0; rank < plan_.cluster.num_devices(); ++rank)
      if (!used.contains(Rank{rank}))
        idle.emplace_back(rank);
    if (!idle.empty())
      warn(fmt::format("no call runs on {} {}",
                       idle.size() == 1 ? "device" : "devices",
                       print_devices(idle)));
  }

  void check_memory(const Replicas& replicas) {
    auto planned = planned_memory(context_, replicas);
    report_.rooms = std::move(planned.rooms);
    internal::TooFull too_full;
    for (auto& memory : planned.devices) {
      const auto limit = context_.memory_of(memory.device);
      auto peak = device_peak(context_, memory);
      too_full.add(memory, peak, limit, [&] {
        return memory_hint(context_, replicas, memory, peak);
      });
      report_.devices.push_back(std::move(peak));
    }
    std::ranges::copy(too_full.mistakes(), std::back_inserter(report_.errors));
  }

  void check_hosts(const Replicas& replicas) {
    auto needs = internal::host_needs(context_, replicas);
    report_.offloaded_bytes = needs.offloaded_bytes;
    std::ranges::move(needs.mistakes, std::back_inserter(report_.errors));
  }

  const CheckContext& context_;
  const Workflow& workflow_;
  const ExecutionPlan& plan_;
  PlanReport report_;
};

} // namespace

PlanReport check_plan(const CheckContext& context) {
  return PlanChecker(context).run();
}

} // namespace troupe::plans
