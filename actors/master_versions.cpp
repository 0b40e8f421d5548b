// Which version of the weights a task uses: the plan's, and nothing else.
#include "actors/master_work.hpp"

namespace troupe::actors {

Version version_of(const MasterSetup& setup, plans::TaskRef task) {
  const auto& entry = setup.graph.tasks.at(task.task);
  if (entry.role.empty())
    return Version{0};
  const auto& role = setup.workflow.role(entry.role);
  const bool blends = entry.kind == plans::TaskKind::move && role.follows;
  const StepId step{task.step.value + (blends ? 1 : 0)};
  return plans::version_for(role, step, entry.lag);
}

/// A training's weights are one version newer when they go.
LifeOrder life_order(const MasterSetup& setup, plans::TaskRef task) {
  const auto& entry = setup.graph.tasks.at(task.task);
  LifeOrder order{static_cast<std::uint8_t>(entry.kind), entry.call,
                  version_of(setup, task)};
  if (entry.kind == plans::TaskKind::offload
      && setup.workflow.call(entry.call).kind == plans::CallKind::train)
    ++order.version.value;
  return order;
}

} // namespace troupe::actors
