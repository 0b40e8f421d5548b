#include "plans/schedule/joined_chunks.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Returns whether the batch of slice `first` may continue with slice `next`,
/// which follows slice `last`. Slices of one call need each other in the order
/// of their devices, and rows only of slices of their own step, which are in
/// no batch with them: such needs are met when the batch begins.
bool joins_slices(const StepGraph& graph, TaskRef first, TaskRef last,
                  TaskRef next) {
  const auto& begun = graph.tasks[first.task];
  const auto& task = graph.tasks[next.task];
  if (task.kind != TaskKind::call || task.call != begun.call
      || task.part.slice.index != graph.tasks[last.task].part.slice.index + 1
      || next.step.value + 1 != last.step.value)
    return false;
  const auto needed_by_first = [&](const Need& need) {
    const auto steps
      = std::int64_t{first.step.value} - std::int64_t{next.step.value};
    return std::ranges::any_of(begun.needs, [&](const Need& known) {
      return known.task == need.task
             && known.steps_back == need.steps_back + steps;
    });
  };
  return std::ranges::all_of(task.needs, [&](const Need& need) {
    const auto& needed = graph.tasks[need.task];
    return (needed.kind == TaskKind::call && needed.call == task.call)
           || needed_by_first(need);
  });
}

/// Returns whether the batch of chunk `first` may continue with chunk `next`,
/// which follows chunk `last`.
bool joins(const StepGraph& graph, TaskRef first, TaskRef last, TaskRef next) {
  const auto& begun = graph.tasks[first.task];
  const auto& task = graph.tasks[next.task];
  if (begun.part.slice.is_cut())
    return joins_slices(graph, first, last, next);
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
  return call.kind == CallKind::generate && !call.by.user_actor;
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
