// The step on bit masks against the master's graph and schedule.
#include "plans/search/bitmask_step.hpp"
#include "plans/search/local_search.hpp"
#include "plans/search/search_step.hpp"
#include "plans/simulate/simulator.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

#include <random>

namespace troupe::plans {
namespace {

using internal::BitmaskStep;
using internal::SearchStep;

TEST(BitmaskStep, SharedDevicesSerialiseAndDependentsWait) {
  BitmaskStep step;
  const auto first = step.add({.seconds = 2, .devices = 0b11});
  step.add({.seconds = 3, .devices = 0b01, .needs = 1u << first});
  step.add({.seconds = 4, .devices = 0b10, .needs = 1u << first});
  EXPECT_DOUBLE_EQ(step.seconds(), 6);
  step.add({.seconds = 1, .devices = 0b01, .needs = 1u << first});
  EXPECT_DOUBLE_EQ(step.seconds(), 6) << "beside the longest";
  step.add({.seconds = 5, .devices = 0b11});
  EXPECT_DOUBLE_EQ(step.seconds(), 11);
}

TEST(BitmaskStep, LongerPathsStartFirst) {
  BitmaskStep step;
  step.add({.seconds = 1, .devices = 1});
  const auto long_path = step.add({.seconds = 1, .devices = 1});
  step.add({.seconds = 9, .devices = 2, .needs = 1u << long_path});
  EXPECT_DOUBLE_EQ(step.seconds(), 10) << "else 11";
}

TEST(BitmaskStep, PureSuccessorsStartInTheirTurn) {
  BitmaskStep step;
  const auto rows = step.add({.seconds = 5, .devices = 0b01});
  const auto planes
    = step.add({.seconds = 3, .devices = 0b10, .follows = 1u << rows});
  step.add({.seconds = 1,
            .devices = 0b10,
            .needs = (1u << rows) | (1u << planes),
            .first = true});
  EXPECT_DOUBLE_EQ(step.seconds(), 6) << "planes come beside the rows";
  step.add({.seconds = 4, .devices = 0b10});
  EXPECT_DOUBLE_EQ(step.seconds(), 8) << "behind what runs before them";
}

TEST(BitmaskStep, AnEmptyStepTakesNoTime) {
  EXPECT_DOUBLE_EQ(BitmaskStep{}.seconds(), 0);
}

/// Problems with one and several replicas per role, offloads and user-defined
/// functions.
std::vector<PlanProblem> step_problems() {
  std::vector<PlanProblem> problems;
  for (const std::uint32_t nodes : {1u, 2u}) {
    problems.push_back(make_problem(shape_7b(), nodes, 4));
    problems.push_back(make_problem(shape_tiny(), nodes, 8, "laptop"));
    problems.push_back(make_problem(shape_7b(), nodes, 4));
    problems.back().workflow
      = make_ppo([](Settings& s) { s.algorithm.old_logprobs = "recompute"; });
    problems.push_back(make_problem(shape_7b(), nodes, 4));
    problems.back().workflow = make_grpo();
    problems.push_back(make_problem(shape_7b(), nodes, 4));
    problems.back().workflow
      = make_ppo([](Settings& s) { s.models["ref"].ema_decay = 0.99; });
    problems.back().workflow.roles.back().ema->every = nodes;
  }
  for (auto& problem : problems) {
    problem.hardware.mem_bytes = 0;
    problem.hardware.move_s = 0.5; // as long as calls
  }
  // a master that is busier than any device
  problems.push_back(make_problem(shape_tiny(), 2, 8, "laptop"));
  problems.back().hardware.mem_bytes = 0;
  problems.back().hardware.call_device_s = 1;
  // weights and moments that are a large part of a device may be offloaded
  problems.push_back(make_problem(shape_34b(), 2, 8));
  problems.push_back(make_problem(shape_7b(), 1, 4));
  auto& follows = problems.back();
  follows.workflow
    = make_ppo([](Settings& s) { s.models["ref"].ema_decay = 0.99; });
  follows.hardware.move_s = 0.5;
  return problems;
}

TEST(SearchStep, EqualsTheScheduleOfThePlanForRandomPoints) {
  int moved = 0, weights = 0, homes = 0, moments = 0, points = 0;
  for (const auto& problem : step_problems()) {
    const CostModel costs(problem);
    const SearchSpace space(problem, costs, {});
    PointCost cost(space, {});
    Walk walk(space, cost, {}, 3);
    const SearchStep fast(space);
    for (int i = 0; i < 250; ++i) {
      const auto point = walk.random_point();
      const auto plan = plan_at(space, point, {});
      const auto slow = simulate_step_s(problem, costs, plan);
      EXPECT_NEAR(fast.seconds(point), slow, 1e-9 * slow) << print(plan);
      moved += replicas_of(problem.workflow, plan).all.size() > 4;
      for (const auto& [role, memory] : plan.roles) {
        const bool trained = problem.workflow.role(role).trained;
        (trained ? homes : weights) += memory.offload_weights;
        moments += memory.offload_optimizer;
      }
      ++points;
    }
  }
  EXPECT_GT(moved, points / 2) << "most points have moves";
  EXPECT_GT(weights, 20);
  EXPECT_GT(homes, 20);
  EXPECT_GT(moments, 20);
}

TEST(SearchStep, ChunksAreIgnored) {
  const auto problem = make_problem(shape_7b(), 1, 4);
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {.chunks = true});
  const SearchStep fast(space);
  SpacePoint point{.options = {0, 0, 0, 0, 0, 0},
                   .positions = {0, 0, 0, 0, 0, 0}};
  const auto& options = space.calls().front().options;
  for (std::uint32_t i = 0; i < options.size(); ++i) {
    point.options[0] = i;
    if (options[i].chunks > 1) {
      EXPECT_FALSE(fast.applies_to(point));
    }
  }
}

} // namespace
} // namespace troupe::plans
