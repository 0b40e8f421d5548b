// The version of the weights that a task uses: the plan's, and nothing else.
#include "actors/master/master_work.hpp"

namespace troupe::actors {

Version version_of(const MasterSetup& setup, plans::TaskRef task) {
  const auto& entry = setup.dataflow.graph.tasks.at(task.task);
  if (entry.role.empty())
    return Version{0};
  const auto& role = setup.dataflow.workflow.role(entry.role);
  const bool ema_updates = entry.kind == plans::TaskKind::move && role.ema;
  const StepId step{task.step.value + (ema_updates ? 1 : 0)};
  return plans::version_for(role, step, entry.lag);
}

/// Returns the order of a task; weights that are offloaded after a training are
/// one version newer.
ResidencyOrder residency_order(const MasterSetup& setup, plans::TaskRef task) {
  const auto& entry = setup.dataflow.graph.tasks.at(task.task);
  ResidencyOrder order{entry.kind, entry.call, version_of(setup, task)};
  if (entry.kind == plans::TaskKind::offload
      && setup.dataflow.workflow.call(entry.call).kind
           == plans::CallKind::train)
    ++order.version.value;
  return order;
}

} // namespace troupe::actors
