// The plans that represent a column of a published table.
#include "config/base/error.hpp"
#include "plans/simulate/published_plans.hpp"
#include "plans/simulate/simulator.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

namespace troupe::plans {
namespace {

TEST(PublishedPlans, OpenRlhfIsTheFasterOfItsTwoRecipes) {
  const auto problem = make_problem(shape_7b(), 2, 8);
  const CostModel costs(problem, published_effects("openrlhf"));
  const auto recipes = published_plans("openrlhf", problem);
  ASSERT_EQ(recipes.size(), 2U);
  EXPECT_NE(recipes[0], recipes[1]);
  const auto taken = simulate_step_s(
    problem, costs, published_plan("openrlhf", problem, costs));
  for (const auto& recipe : recipes)
    EXPECT_LE(taken, simulate_step_s(problem, costs, recipe));
}

TEST(PublishedPlans, SevenBillionOnEightDevicesFitAsTheyWereRun) {
  EXPECT_FALSE(
    published_plans("openrlhf", make_problem(shape_7b(), 1, 8)).empty());
}

TEST(PublishedPlans, WhatFitsNoRecipeIsRefusedWithThePresetsError) {
  EXPECT_THROW(published_plans("openrlhf", make_problem(shape_70b(), 1, 8)),
               PlanError);
}

/// Five groups need five devices, but those that share need three.
TEST(PublishedPlans, ARefusedRecipeLeavesTheOther) {
  const auto problem = make_problem(shape_tiny(), 1, 4);
  EXPECT_THROW(fitted_preset("openrlhf", problem), PlanError);
  const auto recipes = published_plans("openrlhf", problem);
  ASSERT_EQ(recipes.size(), 1U);
  EXPECT_EQ(recipes[0], fitted_preset("openrlhf_colocated", problem));
  EXPECT_THROW(published_plans("openrlhf", make_problem(shape_tiny(), 1, 2)),
               PlanError);
}

TEST(PublishedPlans, EachSystemHasItsEngine) {
  EXPECT_EQ(published_effects("deepspeed_chat").engine, Engine::deepspeed_chat);
  EXPECT_EQ(published_effects("openrlhf_colocated").engine, Engine::openrlhf);
  EXPECT_EQ(published_effects("megatron").engine, CostEffects{}.engine);
}

} // namespace
} // namespace troupe::plans
