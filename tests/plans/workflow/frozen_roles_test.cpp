// Which roles' weights nothing changes or reads but their own kernels.
#include "plans/workflow/evaluation.hpp"
#include "plans/workflow/frozen_roles.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/support.hpp"

namespace troupe::plans {
namespace {

TEST(FrozenRoles, AreTheReferenceAndTheRewardOfPpo) {
  const auto workflow = make_ppo();
  EXPECT_EQ(weights_of_role(workflow, "ref"), RoleWeights::frozen);
  EXPECT_EQ(weights_of_role(workflow, "reward"), RoleWeights::frozen);
  EXPECT_EQ(weights_of_role(workflow, "actor"), RoleWeights::changing);
  EXPECT_EQ(weights_of_role(workflow, "critic"), RoleWeights::changing);
}

TEST(FrozenRoles, AnAverageOfTheActorChanges) {
  auto workflow = make_ppo();
  for (auto& role : workflow.roles)
    if (role.name == "ref")
      role.ema.emplace();
  EXPECT_EQ(weights_of_role(workflow, "ref"), RoleWeights::changing);
}

TEST(FrozenRoles, AServerReadsTheWeightsThatItGeneratesWith) {
  auto workflow = make_ppo();
  for (auto& call : workflow.calls)
    call.by.servers = call.role == "ref";
  EXPECT_EQ(weights_of_role(workflow, "ref"), RoleWeights::changing);
  EXPECT_EQ(weights_of_role(workflow, "reward"), RoleWeights::frozen);
}

TEST(FrozenRoles, TheActorOfAnEvaluationIsOneUnlessTheRunTrains) {
  Settings settings;
  settings.workflow = "ppo";
  settings.eval.data = "rows.jsonl";
  const auto workflow = with_evaluation(make_ppo(), settings);
  EXPECT_EQ(weights_of_role(evaluation_of(workflow), "actor"),
            RoleWeights::frozen);
  const auto beside = evaluation_beside_training(workflow);
  EXPECT_EQ(weights_of_role(beside, "actor"), RoleWeights::changing);
  EXPECT_EQ(weights_of_role(beside, "reward"), RoleWeights::frozen);
}

TEST(FrozenRoles, AnUnknownRoleIsNotTakenForOne) {
  EXPECT_EQ(weights_of_role(make_ppo(), "judge"), RoleWeights::changing);
}

} // namespace
} // namespace troupe::plans
