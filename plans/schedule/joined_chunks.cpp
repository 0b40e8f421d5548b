#include "plans/schedule/joined_chunks.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Returns whether the batch of chunk `first` may continue with chunk `next`,
/// which follows chunk `last`.
bool joins(const StepGraph& graph, TaskRef first, TaskRef last, TaskRef next) {
  const auto& begun = graph.tasks[first.task];
  const auto& task = graph.tasks[next.task];
  if (next.step != first.step || task.kind != TaskKind::call
      || task.call != begun.call
      || task.part.chunk != graph.tasks[last.task].part.chunk + 1)
    return false;
  return std::ranges::all_of(task.needs, [&](const Need& need) {
    const bool of_last = need.task == last.task && need.steps_back == 0;
    return of_last || std::ranges::count(begun.needs, need) > 0;
  });
}

} // namespace

bool may_join(const Call& call) {
  return call.kind == CallKind::generate && !call.user_actor;
}

std::vector<TaskRef> joined_chunks(const StepGraph& graph, const Call& call,
                                   TaskRef first,
                                   std::span<const TaskRef> followers) {
  return may_join(call) ? joined_chunks(graph, first, followers)
                        : std::vector{first};
}

std::vector<TaskRef> joined_chunks(const StepGraph& graph, TaskRef first,
                                   std::span<const TaskRef> followers) {
  std::vector<TaskRef> joined = {first};
  for (const auto next : followers) {
    if (!joins(graph, first, joined.back(), next))
      break;
    joined.push_back(next);
  }
  return joined;
}

} // namespace troupe::plans
