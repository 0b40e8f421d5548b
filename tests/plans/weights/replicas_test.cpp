#include "config/base/error.hpp"
#include "plans/weights/replicas.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

using ::testing::ElementsAre;

namespace troupe::plans {
namespace {

TEST(Replicas, CallsWithEqualDevicesAndStrategyShareOne) {
  const auto workflow = make_ppo();
  const auto replicas = replicas_of(workflow, plan_all(workflow, on(0, 3), 4));
  ASSERT_EQ(replicas.all.size(), 4u);
  EXPECT_EQ(replicas.of_call("actor_gen"), replicas.of_call("actor_train"));
  EXPECT_THAT(replicas[replicas.of_call("actor_gen")].calls,
              ElementsAre("actor_gen", "actor_train"));
}

TEST(Replicas, HomeIsWhereTheRoleTrains) {
  const auto workflow = make_ppo();
  const auto replicas = replicas_of(workflow, plan_apart(workflow));
  const auto& shadow = replicas[replicas.of_call("actor_gen")];
  const auto& home = replicas[replicas.home("actor")];
  EXPECT_FALSE(shadow.home);
  EXPECT_THAT(home.calls, ElementsAre("actor_train"));
  EXPECT_EQ(shadow.name(), "actor@actor_gen");
  EXPECT_EQ(home.name(), "actor@actor_train");
}

TEST(Replicas, HomeOfAFrozenRoleIsItsFirstUse) {
  const auto workflow = make_ppo();
  const auto replicas = replicas_of(workflow, plan_apart(workflow));
  EXPECT_EQ(replicas.home("ref"), replicas.of_call("ref_inf"));
}

TEST(Replicas, AnotherStrategyOnTheSameDevicesIsAnotherReplica) {
  const auto workflow = make_ppo();
  auto plan = plan_all(workflow, on(0, 3), 4);
  plan.calls["actor_gen"].strategy = {.dp = 2, .tp = 2};
  const auto replicas = replicas_of(workflow, plan);
  EXPECT_EQ(replicas.of_role("actor").size(), 2u);
}

TEST(Replicas, ASecondRoleIsWhereItsConversationsAre) {
  const auto workflow = make_ppo_with_opponent();
  auto plan = plan_apart(workflow);
  plan.calls["actor_gen"].strategy = {
    .tp = static_cast<std::uint32_t>(plan.calls["actor_gen"].devices.size())};
  const auto replicas = replicas_of(workflow, plan);
  const auto& first = replicas[replicas.of_call("actor_gen")];
  const auto& second = replicas[replicas.beside(first, "opponent")];
  EXPECT_EQ(second.name(), "opponent@actor_gen");
  EXPECT_TRUE(second.home);
  EXPECT_TRUE(second.calls.empty());
  EXPECT_THAT(second.beside, ElementsAre("actor_gen"));
  // each device has the same coordinate in both
  EXPECT_EQ(first.devices, second.devices);
  EXPECT_EQ(first.strategy, second.strategy);
}

TEST(Replicas, KeepComesFromThePlan) {
  const auto workflow = make_ppo();
  auto plan = plan_apart(workflow);
  plan.replicas["actor@actor_gen"] = true;
  const auto replicas = replicas_of(workflow, plan);
  EXPECT_TRUE(replicas[replicas.of_call("actor_gen")].keep);
  EXPECT_FALSE(replicas[replicas.home("actor")].keep);
}

TEST(Replicas, TrainCallsOfARoleMustShareOne) {
  auto workflow = make_ppo();
  auto again = workflow.call("actor_train");
  again.name = "actor_train_2";
  workflow.calls.push_back(again);
  auto plan = plan_all(workflow, on(0, 1), 2);
  plan.calls["actor_train_2"] = on(1, 1);
  EXPECT_THROW(replicas_of(workflow, plan), PlanError);
}

} // namespace
} // namespace troupe::plans
