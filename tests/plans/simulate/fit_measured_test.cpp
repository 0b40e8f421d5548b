// Costs of a run carried over to another plan.
#include "plans/presets/presets.hpp"
#include "plans/simulate/fit_measured.hpp"
#include "plans/simulate/simulator.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

/// Returns phases of one call each, that took `times` as long as simulated.
std::vector<MeasuredPhase> phases_of(const SimulatedSeconds& simulated,
                                     double times) {
  std::vector<MeasuredPhase> phases;
  for (const auto& [call, seconds] : simulated.calls)
    phases.push_back({.calls = {call}, .seconds = times * seconds});
  return phases;
}

double step_s(const PlanProblem& problem, const ExecutionPlan& plan) {
  return simulate_step_s(problem, CostModel(problem), plan);
}

TEST(FitMeasured, SimulatesThePlanThatRanWithItsMeasuredSeconds) {
  for (const char* hardware : {"a100x8", "laptop"}) {
    auto problem = make_problem(*hardware == 'l' ? shape_tiny() : shape_7b(), 1,
                                4, hardware);
    for (const char* name : {"megatron", "interleaving", "separation"}) {
      const auto plan = preset(name, problem.workflow, problem.cluster);
      problem.measured = {};
      const auto simulated = simulated_seconds(problem, plan);
      auto phases = phases_of(simulated, 1);
      for (std::size_t i = 0; i < phases.size(); ++i)
        phases[i].seconds *= 1.5 + 0.1 * double(i);
      problem.measured
        = fit_measured(problem, plan, phases, 3 * simulated.moves);
      const auto fitted = simulated_seconds(problem, plan);
      for (const auto& phase : phases)
        EXPECT_NEAR(fitted.calls.at(phase.calls[0]), phase.seconds,
                    0.02 * phase.seconds)
          << name << " on " << hardware << ": " << phase.calls[0];
      EXPECT_NEAR(fitted.moves, 3 * simulated.moves, 0.1 * simulated.moves)
        << name << " on " << hardware;
    }
  }
}

TEST(FitMeasured, OnePhaseOfTwoCallsKeepsTheirRatio) {
  const auto problem = make_problem(shape_7b(), 1, 4);
  const auto plan = preset("megatron", problem.workflow, problem.cluster);
  const auto simulated = simulated_seconds(problem, plan);
  const auto both
    = simulated.calls.at("ref_inf") + simulated.calls.at("rew_inf");
  const auto costs = fit_measured(
    problem, plan, {{.calls = {"ref_inf", "rew_inf"}, .seconds = 2 * both}}, 0);
  EXPECT_NEAR(costs.factor_of("ref_inf"), 2, 0.01);
  EXPECT_EQ(costs.factor_of("rew_inf"), costs.factor_of("ref_inf"));
  EXPECT_EQ(costs.factor_of("actor_gen"), 1) << "was not measured";
  EXPECT_EQ(costs.move_factor, 1) << "was not measured";
}

TEST(FitMeasured, AFunctionTakesItsSecondsUnderEveryPlan) {
  auto problem = make_problem(shape_7b(), 1, 8);
  const auto plan = preset("megatron", problem.workflow, problem.cluster);
  const auto before_s = step_s(problem, plan);
  problem.measured
    = fit_measured(problem, plan, {{.calls = {"advantages"}, .seconds = 7}}, 0);
  EXPECT_NEAR(step_s(problem, plan), before_s + 7, 0.01);
  auto other = preset("interleaving", problem.workflow, problem.cluster);
  EXPECT_NEAR(simulated_seconds(problem, other).calls.at("advantages"), 7,
              0.01);
}

} // namespace
} // namespace troupe::plans
