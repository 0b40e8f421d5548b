#include "plans/simulate/fit_measured.hpp"

#include "plans/simulate/simulator.hpp"

namespace troupe::plans {

namespace {

/// Repetitions: the slow-down of calls by each other changes little with their
/// seconds, so the second one is exact within percents.
constexpr int num_fits = 4;

bool is_function(const Workflow& workflow, const std::string& name) {
  return workflow.call(name).kind == CallKind::function;
}

/// Sets the seconds of functions whose phase has no other calls, in equal
/// parts; those beside calls of models stay free, and the calls get their
/// seconds.
void fit_functions(const Workflow& workflow, const MeasuredPhase& phase,
                   MeasuredCosts& costs) {
  for (const auto& name : phase.calls)
    if (!is_function(workflow, name))
      return;
  for (const auto& name : phase.calls)
    costs.function_s[name] = phase.seconds / double(phase.calls.size());
}

void scale_calls(const Workflow& workflow, const MeasuredPhase& phase,
                 const SimulatedSeconds& simulated, MeasuredCosts& costs) {
  double seconds = 0;
  for (const auto& name : phase.calls)
    if (const auto found = simulated.calls.find(name);
        found != simulated.calls.end() && !is_function(workflow, name))
      seconds += found->second;
  if (seconds <= 0 || phase.seconds <= 0)
    return;
  for (const auto& name : phase.calls)
    if (!is_function(workflow, name))
      costs.call_factors[name]
        = costs.factor_of(name) * phase.seconds / seconds;
}

} // namespace

SimulatedSeconds simulated_seconds(const PlanProblem& problem,
                                   const ExecutionPlan& wanted) {
  const CostModel costs(problem);
  const auto plan = with_rooms(problem, wanted);
  const auto replicas = replicas_of(problem.workflow, plan);
  const auto graph = make_step_graph(problem.workflow, plan, replicas);
  const auto seconds = predict_seconds(problem, costs, plan, replicas, graph);
  const auto steps = steps_to_simulate(graph);
  SimulatedSeconds sums;
  for (const auto& times : run_schedule(graph, seconds, steps)) {
    if (times.task.step.value + 2 != steps) // the last one ends alone
      continue;
    const auto& task = graph.tasks[times.task.task];
    if (task.kind == TaskKind::call)
      sums.calls[task.call] += times.end_s - times.start_s;
    else if (task.kind == TaskKind::move || task.kind == TaskKind::update)
      sums.moves += times.end_s - times.start_s;
  }
  return sums;
}

MeasuredCosts fit_measured(PlanProblem problem, const ExecutionPlan& plan,
                           const std::vector<MeasuredPhase>& phases,
                           double moves_s) {
  auto& costs = problem.measured;
  for (const auto& phase : phases)
    fit_functions(problem.workflow, phase, costs);
  for (int i = 0; i < num_fits; ++i) {
    const auto simulated = simulated_seconds(problem, plan);
    for (const auto& phase : phases)
      scale_calls(problem.workflow, phase, simulated, costs);
    if (simulated.moves > 0 && moves_s > 0)
      costs.move_factor *= moves_s / simulated.moves;
  }
  return costs;
}

} // namespace troupe::plans
