#include "plans/search/local_search.hpp"
#include "plans/search/plan_point.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/mixed_support.hpp"

namespace troupe::plans {
namespace {

TEST(PlanPoint, ThePointOfAPlanOfTheSpaceMakesThisPlan) {
  int offloads = 0;
  for (const auto& problem :
       {make_problem(shape_7b(), 2, 4), make_problem(shape_34b(), 2, 8),
        fast_and_slow(shape_7b(), 2, 4, 40e9)}) {
    const CostModel costs(problem);
    const SearchSpace space(problem, costs, {.chunks = true});
    PointCost cost(space, {});
    Walk walk(space, cost, {}, 19);
    for (int i = 0; i < 200; ++i) {
      const auto plan = plan_at(space, walk.random_point(), {});
      const auto point = internal::point_of(space, plan);
      ASSERT_TRUE(point.has_value()) << print(plan);
      EXPECT_EQ(plan_at(space, *point, {}), plan);
      offloads += !plan.roles.empty();
    }
  }
  EXPECT_GT(offloads, 50);
}

TEST(PlanPoint, APlanOutsideTheSpaceHasNone) {
  const auto problem = make_problem(shape_7b(), 2, 4);
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  PointCost cost(space, {});
  Walk walk(space, cost, {}, 23);
  const auto plan = plan_at(space, walk.random_point(), {});
  ASSERT_TRUE(internal::point_of(space, plan).has_value());
  auto other = plan;
  other.calls["ref_inf"].devices = {Rank{0}, Rank{2}}; // no run
  EXPECT_FALSE(internal::point_of(space, other).has_value());
  other = plan;
  other.calls["ref_inf"].chunks = 3; // in no option
  EXPECT_FALSE(internal::point_of(space, other).has_value());
}

} // namespace
} // namespace troupe::plans
