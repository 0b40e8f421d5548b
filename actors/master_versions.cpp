// Which version of the weights a task uses: the plan's, and nothing else.
#include "actors/master_work.hpp"

namespace troupe::actors {

Version version_of(const MasterSetup& setup, plans::TaskRef task) {
  const auto& entry = setup.graph.tasks.at(task.task);
  const bool trained
    = !entry.role.empty() && setup.workflow.role(entry.role).trained;
  return trained ? plans::version_for(task.step, entry.lag) : Version{0};
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
