#include "config/base/error.hpp"
#include "plans/search/kind_walk.hpp"
#include "plans/search/lower_bound.hpp"
#include "plans/search/preset_starts.hpp"
#include "plans/search/search.hpp"
#include "plans/simulate/simulator.hpp"

#include "tests/support/plans/mixed_support.hpp"
#include <gmock/gmock.h>

#include <set>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

double found_s(const PlanProblem& problem) {
  return search_plan(problem, CostModel(problem), {}).best.step_s;
}

TEST(KindWalk, TwoKindsTogetherBeatPresetsAndEitherAlone) {
  const auto problem = fast_and_slow(shape_7b(), 1, 8);
  const CostModel costs(problem);
  const auto found = search_plan(problem, costs, {});
  EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
  const auto presets = internal::presets_that_fit(problem, costs, {});
  ASSERT_FALSE(presets.empty());
  EXPECT_LT(found.best.step_s, presets.front().step_s);
  EXPECT_LT(found.best.step_s, found_s(on_kind(problem, 0)));
  EXPECT_LT(found.best.step_s, found_s(on_kind(problem, 1)));
  std::set<KindSet> used;
  for (const auto& [name, place] : found.best.plan.calls)
    used.insert(problem.hardware.kinds_of(place.devices, problem.cluster));
  EXPECT_TRUE(used.contains(0b01) && used.contains(0b10))
    << print(found.best.plan);
}

TEST(KindWalk, ItDoesNotWaitForAUselessKind) {
  auto problem = fast_and_slow(shape_7b(), 1, 8);
  auto& useless = problem.hardware.kinds[1].hardware;
  useless.gemm_flops /= 100;
  useless.attn_flops /= 100;
  useless.mem_Bps /= 100;
  useless.cache_Bps /= 100;
  problem.hardware.update();
  EXPECT_LE(found_s(problem), found_s(on_kind(problem, 0)));
}

TEST(KindWalk, NothingIsProvedAndTheBoundHolds) {
  const auto problem = fast_and_slow(shape_7b(), 1, 2);
  const CostModel costs(problem);
  const auto found = search_plan(problem, costs, {});
  EXPECT_FALSE(found.proved);
  EXPECT_EQ(found.method, "descent");
  EXPECT_THAT(proof_sentence(found), HasSubstr("not proved"));
  EXPECT_GT(found.lower_bound_s, 0);
  EXPECT_LE(found.lower_bound_s, found.best.step_s);
  const SearchSpace space(problem, costs, {});
  PointCost cost(space, {});
  Walk walk(space, cost, {}, 9);
  int finite = 0;
  for (int i = 0; i < 6000; ++i) {
    const auto point_s = cost.step_s(walk.random_point());
    EXPECT_GE(point_s, found.lower_bound_s * (1 - 1e-9));
    EXPECT_GE(point_s, found.best.step_s * (1 - 1e-9));
    finite += point_s < 1e9;
  }
  EXPECT_GT(finite, 1000);
  EXPECT_THROW(search_plan(problem, costs, {.method = SearchMethod::exact}),
               PlanError);
}

TEST(KindWalk, APointTakesTheSecondsThatItsPlanSimulates) {
  for (const auto nodes : {1u, 2u}) {
    auto problem = fast_and_slow(shape_7b(), nodes, 4, 40e9);
    problem.hardware.kinds[0].hardware.move_s = 0.5; // as long as calls
    problem.hardware.update();
    const CostModel costs(problem);
    const SearchSpace space(problem, costs, {});
    PointCost cost(space, {});
    Walk walk(space, cost, {}, 13);
    int fit = 0;
    for (int i = 0; i < 400; ++i) {
      const auto point = walk.random_point();
      const auto point_s = cost.step_s(point);
      const auto plan = plan_at(space, point, {});
      if (point_s > 1e9)
        continue;
      ++fit;
      EXPECT_TRUE(check_plan(problem, plan).ok()) << print(plan);
      // three steps, whose sums are rounded otherwise than those of one
      const auto plan_s = simulate_step_s(problem, costs, plan);
      EXPECT_NEAR(point_s, plan_s, 1e-12 * plan_s) << print(plan);
    }
    EXPECT_GT(fit, 100);
  }
}

TEST(KindWalk, TheFullestDeviceIsTheOneThatLacksMost) {
  const auto problem = fast_and_slow(shape_7b(), 1, 4, 30e9);
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  PointCost cost(space, {});
  Walk walk(space, cost, {}, 17);
  int full = 0;
  for (int i = 0; i < 400; ++i) {
    const auto point = walk.random_point();
    const auto report = check_plan(problem, plan_at(space, point, {}));
    const bool fits = peak_bytes(space, point) <= space.memory_bytes();
    if (fits) {
      EXPECT_TRUE(report.ok());
    }
    full += !fits;
  }
  EXPECT_GT(full, 20);
  EXPECT_LT(full, 380);
  EXPECT_EQ(space.missing_bytes(0), 0u);
  EXPECT_EQ(space.missing_bytes(4), 50'000'000'000u);
}

TEST(KindWalk, WhatDoesNotFitNamesADeviceAndItsMemory) {
  const auto problem = fast_and_slow(shape_70b(), 1, 2, 40e9);
  const CostModel costs(problem);
  EXPECT_THAT(refusal_of([&] { search_plan(problem, costs, {}); }),
              HasSubstr("no plan fits: the smallest peak "));
}

} // namespace
} // namespace troupe::plans
