// The gain of slices of a generation in the simulator: with a long tail few
// responses are left in later slices, and they run beside the next steps'.
#include "plans/simulate/simulator.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/long_responses.hpp"

namespace troupe::plans {
namespace {

double step_s(const PlanProblem& problem, ExecutionPlan plan, int slices,
              std::uint32_t lag = 0) {
  plan.calls["actor_gen"].slices = slices;
  if (lag > 0)
    plan.lag["actor_gen"] = lag;
  return simulate(problem, CostModel(problem), plan).step_s;
}

TEST(SlicesSimulated, ALongTailTakesFewerStepsAnHourWithoutThem) {
  const auto problem = long_responses();
  const auto together = plan_all(problem.workflow, on(0, 3), 4);
  const auto whole_s = step_s(problem, together, 1);
  EXPECT_GE(whole_s / step_s(problem, together, 4), 1.3);
  EXPECT_GE(whole_s / step_s(problem, together, 8), 1.5);

  auto apart = plan_all(problem.workflow, on(0, 1), 4);
  apart.calls["actor_gen"] = on(2, 3);
  EXPECT_GE(step_s(problem, apart, 1) / step_s(problem, apart, 4), 1.3);
  EXPECT_GE(step_s(problem, apart, 1, 1) / step_s(problem, apart, 4, 1), 1.3);
}

TEST(SlicesSimulated, TheSlicesOfAVersionAreOneBatch) {
  const auto problem = long_responses();
  auto plan = plan_all(problem.workflow, on(0, 3), 4);
  plan.calls["actor_gen"].slices = 4;
  const CostModel costs(problem);
  const auto& call = problem.workflow.call("actor_gen");
  const auto& placement = plan.calls.at("actor_gen");
  const auto run = simulate(problem, costs, plan);
  const auto batch_s = costs.slices_s(call, placement, 0, 3);
  double apart_s = 0;
  for (std::uint32_t i = 0; i < 4; ++i)
    apart_s += costs.slices_s(call, placement, i, i);
  EXPECT_LT(batch_s, 0.7 * apart_s);
  double late_s = 0; // of a step in the middle
  for (const auto& task : run.times)
    if (run.graph.tasks[task.task.task].call == "actor_gen"
        && task.task.step.value == 5)
      late_s += task.end_s - task.start_s;
  EXPECT_NEAR(late_s, batch_s, 1e-6 * batch_s);
}

} // namespace
} // namespace troupe::plans
