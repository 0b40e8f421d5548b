#include "plans/cost/cost_model.hpp"
#include "plans/search/refined_plans.hpp"
#include "plans/simulate/simulator.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

#include <algorithm>

namespace troupe::plans {
namespace {

struct Found {
  PlanProblem problem = make_problem(shape_7b(), 1, 8);
  CostModel costs{problem};
  SearchResult closed = search_plan(problem, costs, {});
  SearchResult planned = find_plan(problem, costs, {});
};

TEST(RefinedPlans, CountMovesTransferByTransfer) {
  const Found found;
  const auto costs = found.costs.with_planned_moves();
  auto all = found.planned.next;
  all.insert(all.begin(), found.planned.best);
  bool differs = false;
  for (const auto& one : all) {
    EXPECT_EQ(one.step_s, simulate_step_s(found.problem, costs, one.plan));
    EXPECT_EQ(one.step_s, simulate(found.problem, costs, one.plan).step_s);
    differs
      = differs
        || one.step_s != simulate_step_s(found.problem, found.costs, one.plan);
  }
  EXPECT_TRUE(differs) << "none moves anything";
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &FoundPlan::step_s));
}

TEST(RefinedPlans, KeepTheBoundAndProofOfTheSearch) {
  const Found found;
  EXPECT_EQ(found.planned.next.size(), found.closed.next.size());
  EXPECT_LE(found.planned.lower_bound_s, found.closed.lower_bound_s);
  EXPECT_LE(found.planned.lower_bound_s, found.planned.best.step_s);
  EXPECT_EQ(found.planned.proved,
            found.closed.proved
              && found.planned.best.plan == found.closed.best.plan);
  EXPECT_EQ(found.planned.end == SearchEnd::refined,
            found.closed.proved && !found.planned.proved);
  EXPECT_NEAR(found.planned.best.step_s, found.closed.best.step_s,
              0.05 * found.closed.best.step_s);
}

TEST(RefinedPlans, CountTransfersOfFourAndSixteenNodes) {
  for (const std::uint32_t nodes : {4u, 16u}) {
    const auto problem = make_problem(shape_7b(), nodes, 8);
    const auto all = problem.cluster.num_devices();
    const Placement from{.devices = ranks(0, 7),
                         .strategy = parse_strategy("p4t2")};
    const Placement to{.devices = ranks(0, all - 1),
                       .strategy = {.dp = all / 4, .tp = 4}};
    const auto planned
      = planned_move_bytes(problem.shapes.at("actor"), problem.dtype("actor"),
                           from, to, problem.cluster);
    const CostModel costs(problem);
    const auto busiest = [&](const CostModel& model) {
      return model.move_bytes_of("actor", from, to).busiest_inter;
    };
    EXPECT_NE(busiest(costs), planned.busiest_inter);
    EXPECT_EQ(busiest(costs.with_planned_moves()), planned.busiest_inter);
  }
}

TEST(SearchReport, SecondsHaveNoExponent) {
  SearchResult found;
  found.best.step_s = 123456;
  found.lower_bound_s = 100000;
  found.next = {{.step_s = 246912, .origin = "preset verl"}};
  EXPECT_EQ(summary(found), "best 123456 s, lower bound 100000 s, gap 23.5 %");
  EXPECT_EQ(next_best_lines(found),
            std::vector<std::string>{
              "next best: 246912 s, 100.0 % more (preset verl)"});
}

} // namespace
} // namespace troupe::plans
