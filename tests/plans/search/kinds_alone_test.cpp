#include "plans/search/kinds_alone.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/mixed_support.hpp"

namespace troupe::plans {
namespace {

TEST(KindsAlone, EachPlanIsOnTheNodesOfItsKindAndAsFastAsThere) {
  auto problem = fast_and_slow(shape_7b(), 3, 4);
  problem.hardware.kind_of_nodes = {0, 1, 0, 1};
  const CostModel costs(problem);
  const auto plans = internal::plans_on_one_kind(problem, costs, {});
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].origin, "h100x8 alone");
  EXPECT_EQ(plans[1].origin, "slower alone");
  for (std::uint32_t kind = 0; kind < 2; ++kind) {
    const auto alone = on_kind(problem, kind);
    EXPECT_DOUBLE_EQ(plans[kind].step_s,
                     search_plan(alone, CostModel(alone), {}).best.step_s);
    for (const auto& [name, place] : plans[kind].plan.calls) {
      if (place.devices.empty())
        continue; // on the host
      EXPECT_EQ(problem.hardware.kinds_of(place.devices, problem.cluster),
                KindSet{1} << kind)
        << name;
    }
  }
}

TEST(KindsAlone, AKindThatNoPlanFitsIsLeftOut) {
  const auto problem = fast_and_slow(shape_7b(), 1, 8, 10e9);
  const auto plans
    = internal::plans_on_one_kind(problem, CostModel(problem), {});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].origin, "h100x8 alone");
}

TEST(KindsAlone, ThereAreNoneWhereNodesAreAlike) {
  const auto problem = make_problem(shape_7b(), 2, 8);
  EXPECT_TRUE(
    internal::plans_on_one_kind(problem, CostModel(problem), {}).empty());
}

} // namespace
} // namespace troupe::plans
