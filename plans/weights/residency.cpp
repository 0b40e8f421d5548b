#include "plans/weights/residency.hpp"

#include "config/base/error.hpp"
#include "plans/workflow/call_levels.hpp"

#include <algorithm>

namespace troupe::plans {

bool has_lag(const ExecutionPlan& plan, const Replica& replica) {
  return std::ranges::any_of(replica.calls, [&](const std::string& call) {
    return plan.most_lag_of(call) > 0;
  });
}

bool is_lagged(const Workflow& workflow, const ExecutionPlan& plan,
               const Replica& replica) {
  return !replica.home && workflow.role(replica.role).trained
         && has_lag(plan, replica);
}

bool others_come_first(const Workflow& workflow, const ExecutionPlan& plan,
                       const Replica& replica) {
  const auto awaited = awaited_calls(workflow);
  const auto& first = workflow.call(replica.calls.front());
  const auto reader = static_cast<std::size_t>(&first - workflow.calls.data());
  const auto is_here = [&](Rank device) {
    return std::ranges::count(replica.devices, device) > 0;
  };
  if (plan.lags())
    return true; // calls of another step may
  for (std::size_t i = 0; i < workflow.calls.size(); ++i) {
    const auto& name = workflow.calls[i].name;
    const auto placement = plan.calls.find(name);
    if (placement != plan.calls.end() && !awaited[i][reader]
        && std::ranges::count(replica.calls, name) == 0
        && std::ranges::any_of(placement->second.devices, is_here))
      return true;
  }
  return false;
}

std::string_view why_kept(const Workflow& workflow, const ExecutionPlan& plan,
                          const Replica& replica) {
  if (replica.home)
    return "it is the role's home, where its weights live";
  if (!workflow.role(replica.role).trained)
    return "no move brings back what no training changes";
  if (replica.keep)
    return "another call of the same replica keeps it";
  if (has_lag(plan, replica))
    return "a lag needs its version in the next step";
  return {};
}

bool is_dropped(const Workflow& workflow, const ExecutionPlan& plan,
                const Replica& replica) {
  return why_kept(workflow, plan, replica).empty();
}

void check_drops(const Workflow& workflow, const ExecutionPlan& plan,
                 const Replicas& replicas) {
  for (const auto& call : workflow.calls) {
    const auto name = call.role + "@" + call.name;
    const auto found = plan.replicas.find(name);
    if (found == plan.replicas.end() || found->second)
      continue;
    const auto why
      = why_kept(workflow, plan, replicas[replicas.of_call(call.name)]);
    if (!why.empty())
      throw PlanError(
        {.place = {},
         .path = "replicas." + name,
         .expected = "{keep: true} or no line, as " + std::string(why),
         .got = "{keep: false}",
         .hint = {}});
  }
}

RoleMemory leaves(const Workflow& workflow, const ExecutionPlan& plan,
                  const Replica& replica) {
  const auto found = plan.roles.find(replica.role);
  if (found == plan.roles.end() || is_dropped(workflow, plan, replica))
    return {};
  const bool trains = replica.home && workflow.role(replica.role).trained;
  return {.offload_weights = found->second.offload_weights,
          .offload_optimizer = found->second.offload_optimizer && trains};
}

RoleMemory used_by(const Call& call, RoleMemory memory) {
  memory.offload_optimizer
    = memory.offload_optimizer && call.kind == CallKind::train;
  return memory;
}

bool is_written_back(const Workflow& workflow, const Replica& replica,
                     const Call& call) {
  return call.kind == CallKind::train
         || (workflow.role(replica.role).trained && !replica.home);
}

bool only_generates(const Workflow& workflow, const ExecutionPlan& plan,
                    const Replicas& replicas, const Replica& replica) {
  const auto generates = [&](const std::string& name) {
    return workflow.call(name).kind == CallKind::generate;
  };
  const auto is_elsewhere = [&](const Replica& other) {
    return other == replica
           || std::ranges::find_first_of(replica.devices, other.devices)
                == replica.devices.end();
  };
  return !replica.calls.empty() && replica.beside.empty()
         && std::ranges::all_of(replica.calls, generates)
         && !workflow.role(replica.role).ema // moves are staged
         && leaves(workflow, plan, replica) == RoleMemory{}
         && std::ranges::all_of(replicas.all, is_elsewhere);
}

bool comes_and_goes(const Workflow& workflow, const ExecutionPlan& plan,
                    const Replicas& replicas, const Call& call) {
  if (call.role.empty())
    return false;
  const auto& replica = replicas[replicas.of_call(call.name)];
  return used_by(call, leaves(workflow, plan, replica)) != RoleMemory{};
}

} // namespace troupe::plans
