// Fits the costs of calls to what a run took: under the result, the plan that
// ran is simulated with the measured seconds in each phase. Calls that share
// cores slow each other down in the simulation too, so the factors are found by
// repetition.
#pragma once

#include "plans/cost/measured_costs.hpp"
#include "plans/cost/plan_problem.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::plans {

/// Calls that were measured together, and the sum of the seconds of their tasks
/// in a step.
struct MeasuredPhase {
  std::vector<std::string> calls = {};
  double seconds = 0;
};

/// Seconds of the tasks of a simulated step, while other tasks run beside them.
struct SimulatedSeconds {
  std::map<std::string, double> calls = {};
  double moves = 0;
};
/// Simulates a plan that fits and returns the sums of a late step.
SimulatedSeconds simulated_seconds(const PlanProblem& problem,
                                   const ExecutionPlan& plan);

/// Returns costs that fit the phases and the moves of a step of `plan`, which
/// ran in this problem. Phases without seconds keep their predictions, and
/// functions in a phase with calls of models stay free.
MeasuredCosts fit_measured(PlanProblem problem, const ExecutionPlan& plan,
                           const std::vector<MeasuredPhase>& phases,
                           double moves_s);

} // namespace troupe::plans
