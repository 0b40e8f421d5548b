#include "plans/replica_life.hpp"

#include <algorithm>

namespace troupe::plans {

bool is_dropped(const Workflow& workflow, const ExecutionPlan& plan,
                const Replica& replica) {
  const bool lags
    = std::ranges::any_of(replica.calls, [&](const std::string& call) {
        return plan.lag_of(call) > 0;
      });
  return workflow.role(replica.role).trained && !replica.home && !replica.keep
         && !lags;
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

bool comes_and_goes(const Workflow& workflow, const ExecutionPlan& plan,
                    const Replicas& replicas, const Call& call) {
  if (call.role.empty())
    return false;
  const auto& replica = replicas[replicas.of_call(call.name)];
  return used_by(call, leaves(workflow, plan, replica)) != RoleMemory{};
}

} // namespace troupe::plans
