// Predicted seconds of each task of a graph, alone and in a running batch.
#include "plans/schedule/joined_chunks.hpp"
#include "plans/simulate/simulator.hpp"
#include "plans/weights/residency.hpp"

#include <algorithm>

namespace troupe::plans {

double predict_task_s(const PlanProblem& problem, const CostModel& costs,
                      const ExecutionPlan& plan, const TaskTemplate& task) {
  const auto placement = plan.calls.find(task.call);
  if (task.kind != TaskKind::call || placement == plan.calls.end())
    return 0;
  const auto& call = problem.workflow.call(task.call);
  if (const auto& slice = task.part.slice; slice.is_cut()) {
    const auto batch_s
      = costs.slices_s(call, placement->second, 0, slice.index);
    return slice.index == 0
             ? batch_s
             : std::max(0.0, batch_s
                               - costs.slices_s(call, placement->second, 0,
                                                slice.index - 1));
  }
  return task.part.chunk == 0 ? costs.call_s(call, placement->second)
                              : costs.later_chunk_s(call, placement->second);
}

namespace {

/// Returns whether the batch of a part before may hold it too.
bool is_later_part(const TaskPart& part) {
  return part.chunk > 0 || part.slice.index > 0;
}

/// Returns the seconds of a later part that begins a batch.
double predict_batch_s(const PlanProblem& problem, const CostModel& costs,
                       const ExecutionPlan& plan, const TaskTemplate& task) {
  if (const auto& slice = task.part.slice; slice.is_cut())
    return costs.slices_s(problem.workflow.call(task.call),
                          plan.calls.at(task.call), slice.index, slice.index);
  auto first = task;
  first.part.chunk = 0;
  return predict_task_s(problem, costs, plan, first);
}

double predict_use(const PlanProblem& problem, const CostModel& costs,
                   const ExecutionPlan& plan, const TaskTemplate& task) {
  const auto placement = plan.calls.find(task.call);
  if (task.kind != TaskKind::call || placement == plan.calls.end())
    return 1;
  const auto& call = problem.workflow.call(task.call);
  const bool works = call.kind != CallKind::function;
  return works ? costs.use_of(call, placement->second) : 1;
}

/// Predicts the seconds to load planes for a call, or to offload them.
double predict_stay_s(const PlanProblem& problem, const CostModel& costs,
                      const ExecutionPlan& plan, const Replica& replica,
                      const TaskTemplate& task) {
  const auto& call = problem.workflow.call(task.call);
  if (task.kind == TaskKind::offload
      && !is_written_back(problem.workflow, replica, call))
    return 0;
  return costs.planes_s(task.role, mesh_of(replica),
                        used_by(call, leaves(problem.workflow, plan, replica)));
}

} // namespace

TaskSeconds predict_seconds(const PlanProblem& problem, const CostModel& costs,
                            const ExecutionPlan& plan, const Replicas& replicas,
                            const StepGraph& graph) {
  TaskSeconds seconds{.cores = {problem.hardware, problem.cluster}};
  const auto seconds_of = [&](const TaskTemplate& task) {
    switch (task.kind) {
    case TaskKind::move:
      return costs.move_s(task.role, mesh_of(replicas[*task.source]),
                          mesh_of(replicas[*task.target]))
             / task.every;
    case TaskKind::update:
      return costs.update_s(problem.workflow.call(task.call),
                            plan.calls.at(task.call));
    case TaskKind::reload:
    case TaskKind::offload:
      return predict_stay_s(problem, costs, plan, replicas[*task.target], task);
    default:
      return predict_task_s(problem, costs, plan, task);
    }
  };
  for (const auto& task : graph.tasks) {
    seconds.all.push_back(seconds_of(task));
    if (task.kind == TaskKind::call && plan.calls.contains(task.call))
      seconds.master_s += costs.master_s(plan.calls.at(task.call));
    if (seconds.cores.any())
      seconds.use.push_back(predict_use(problem, costs, plan, task));
  }
  const bool may_end = std::ranges::any_of(graph.tasks, [&](const auto& task) {
    return is_later_part(task.part)
           && may_join(problem.workflow.call(task.call));
  });
  if (!may_end)
    return seconds;
  seconds.begins_batch = seconds.all;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i)
    if (is_later_part(graph.tasks[i].part))
      seconds.begins_batch[i]
        = predict_batch_s(problem, costs, plan, graph.tasks[i]);
  return seconds;
}

} // namespace troupe::plans
