#include "plans/cost_model.hpp"
#include "plans/finalists.hpp"
#include "plans/simulator.hpp"

#include <gtest/gtest.h>

#include "problem_support.hpp"

#include <algorithm>

namespace troupe::plans {
namespace {

struct Found {
  PlanProblem problem = make_problem(shape_7b(), 1, 8);
  CostModel costs{problem};
  SearchResult closed = search_plan(problem, costs, {});
  SearchResult planned = find_plan(problem, costs, {});
};

TEST(Finalists, TakeWhatTheirMovesTakeTransferByTransfer) {
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

TEST(Finalists, AreThoseOfTheSearchWithItsBoundAndProof) {
  const Found found;
  EXPECT_EQ(found.planned.next.size(), found.closed.next.size());
  EXPECT_LE(found.planned.lower_bound_s, found.closed.lower_bound_s);
  EXPECT_LE(found.planned.lower_bound_s, found.planned.best.step_s);
  EXPECT_EQ(found.planned.proved,
            found.closed.proved
              && found.planned.best.plan == found.closed.best.plan);
  EXPECT_NEAR(found.planned.best.step_s, found.closed.best.step_s,
              0.05 * found.closed.best.step_s);
}

} // namespace
} // namespace troupe::plans
