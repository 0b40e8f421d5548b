#include "plans/schedule/server_updates.hpp"

#include "plans/workflow/served_calls.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

void add_update(StepGraph& graph, const Call& call, ReplicaId replica,
                std::uint32_t first) {
  const auto& begun = graph.tasks[first];
  TaskTemplate update{.name = fmt::format("update {}@{}", call.role, call.name),
                      .kind = TaskKind::update,
                      .call = call.name,
                      .role = call.role,
                      .source = replica,
                      .target = replica,
                      .devices = begun.devices,
                      .needs = {},
                      .lag = begun.lag};
  for (const auto& need : begun.needs) {
    if (need.edge != Edge::version && need.edge != Edge::order)
      continue;
    update.needs.push_back(need);
    // between planes that are moved right before the call, and the call
    if (graph.tasks[need.task].right_before == first)
      update.right_before = first;
  }
  graph.tasks[first].needs.push_back(
    {static_cast<std::uint32_t>(graph.tasks.size()), 0, Edge::version});
  graph.tasks.push_back(std::move(update));
}

} // namespace

void add_server_updates(StepGraph& graph, const Workflow& workflow,
                        const Replicas& replicas) {
  for (const auto& call : workflow.calls) {
    if (!has_server_update(workflow, call))
      continue;
    const auto first
      = std::ranges::find(graph.tasks, call.name, &TaskTemplate::call);
    add_update(graph, call, replicas.of_call(call.name),
               static_cast<std::uint32_t>(first - graph.tasks.begin()));
  }
}

TaskTemplate& first_on_replica(StepGraph& graph, std::uint32_t first) {
  for (const auto& need : graph.tasks[first].needs) {
    auto& task = graph.tasks[need.task];
    if (need.steps_back != 0 || task.kind != TaskKind::update)
      continue;
    task.right_before = first;
    return task;
  }
  return graph.tasks[first];
}

} // namespace troupe::plans
