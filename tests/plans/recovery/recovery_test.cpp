#include "plans/recovery/recovery.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include <vector>

namespace troupe::plans {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// An attempt that lost `worker` in `step`, after a checkpoint of `saved`
/// steps.
FailedAttempt lost(std::uint32_t worker, std::uint32_t step,
                   std::uint32_t saved) {
  return {.failure = {.code = Errc::peer_lost,
                      .who = "worker",
                      .what = "killed by signal 9 during run of actor_train",
                      .cause = ""},
          .worker = WorkerId{worker},
          .step = StepId{step},
          .saved = StepId{saved},
          .started = true,
          .killed = true};
}

TEST(Recovery, ALostOrHungWorkerIsRecoveredFromAndNothingElse) {
  for (const auto code :
       {Errc::peer_lost, Errc::deadline, Errc::bad_input, Errc::io, Errc::bug,
        Errc::refused, Errc::out_of_memory}) {
    auto attempt = lost(1, 3, 2);
    attempt.failure.code = code;
    const auto decision
      = decide_recovery(std::vector{attempt}, {.max_restarts = 3});
    EXPECT_EQ(decision.recovers,
              code == Errc::peer_lost || code == Errc::deadline)
      << to_string(code);
    EXPECT_THAT(decision.reason, IsEmpty());
  }
}

TEST(Recovery, WithoutRestartsTheFirstLossEndsTheRun) {
  const auto decision
    = decide_recovery(std::vector{lost(1, 3, 2)}, {.max_restarts = 0});
  EXPECT_FALSE(decision.recovers);
  EXPECT_THAT(decision.reason, IsEmpty());
}

TEST(Recovery, ItGivesUpAfterSoManyRestartsWithoutANewerCheckpoint) {
  std::vector<FailedAttempt> attempts;
  for (std::uint32_t i = 0; i < 3; ++i) {
    attempts.push_back(lost(i % 2, 4 + i, 2));
    EXPECT_TRUE(decide_recovery(attempts, {.max_restarts = 3}).recovers) << i;
  }
  attempts.push_back(lost(1, 9, 2));
  const auto decision = decide_recovery(attempts, {.max_restarts = 3});
  EXPECT_FALSE(decision.recovers);
  EXPECT_THAT(decision.reason, HasSubstr("3 restarts"));
}

TEST(Recovery, ANewerCheckpointAllowsAllRestartsAgain) {
  std::vector<FailedAttempt> attempts;
  for (std::uint32_t i = 0; i < 100; ++i) {
    attempts.push_back(lost(i % 2, i, i));
    EXPECT_TRUE(decide_recovery(attempts, {.max_restarts = 1}).recovers) << i;
  }
}

TEST(Recovery, AStepThatEndsTheSameWorkerTwiceIsNotTriedAThirdTime) {
  const std::vector twice{lost(1, 3, 2), lost(1, 3, 2)};
  const auto decision = decide_recovery(twice, {.max_restarts = 3});
  EXPECT_FALSE(decision.recovers);
  EXPECT_THAT(decision.reason, HasSubstr("step 4 ended worker 1 twice"));
  EXPECT_THAT(decision.reason, HasSubstr("actor_train"));
}

TEST(Recovery, AnotherWorkerStepOrWayToEndOrANewStartIsNoPoison) {
  auto other_way = lost(1, 3, 2);
  other_way.killed = false;
  auto at_start = lost(1, 3, 2);
  at_start.started = false;
  for (const auto& second : {lost(0, 3, 2), lost(1, 4, 2), other_way, at_start})
    EXPECT_TRUE(
      decide_recovery(std::vector{lost(1, 3, 2), second}, {.max_restarts = 3})
        .recovers);
}

TEST(Recovery, ARunThatNeverStartedEndsUnlessASignalEndedItsWorker) {
  auto attempt = lost(0, 0, 0);
  attempt.started = false;
  EXPECT_TRUE(
    decide_recovery(std::vector{attempt}, {.max_restarts = 3}).recovers);
  attempt.killed = false;
  EXPECT_FALSE(
    decide_recovery(std::vector{attempt}, {.max_restarts = 3}).recovers);
  const std::vector later{lost(1, 5, 4), attempt};
  EXPECT_TRUE(decide_recovery(later, {.max_restarts = 3}).recovers)
    << "it had started before";
}

/// An attempt that could not start because node `node` was gone.
FailedAttempt without(std::uint32_t node) {
  auto attempt = lost(node, 3, 2);
  attempt.started = attempt.killed = false;
  attempt.absent_node = node;
  return attempt;
}

TEST(LostNode, IsWaitedForAsLongAsItTakes) {
  std::vector attempts{lost(1, 3, 2)};
  for (int i = 0; i < 50; ++i) {
    attempts.push_back(without(1));
    const auto decision = decide_recovery(
      attempts, {.max_restarts = 1, .lost_node = LostNode::wait, .nodes = 2});
    EXPECT_TRUE(decision.recovers && decision.wait > 0s) << i;
  }
}

TEST(LostNode, IsWaitedForTwiceAsLongEachTimeUpTo5Minutes) {
  std::vector attempts{lost(1, 3, 2)};
  const RecoveryRules rules{
    .max_restarts = 1, .lost_node = LostNode::wait, .nodes = 2};
  std::vector<std::chrono::seconds> waits;
  for (int i = 0; i < 7; ++i) {
    attempts.push_back(without(1));
    waits.push_back(decide_recovery(attempts, rules).wait);
  }
  EXPECT_THAT(waits, ElementsAre(10s, 20s, 40s, 80s, 160s, 300s, 300s));
  attempts.push_back(lost(0, 9, 8));
  EXPECT_EQ(decide_recovery(attempts, rules).wait, 0s) << "it was back";
  attempts.push_back(without(1));
  EXPECT_EQ(decide_recovery(attempts, rules).wait, 10s);
}

TEST(LostNode, IsDoneWithoutWhereOthersAreLeft) {
  const std::vector attempts{lost(1, 3, 2), without(1)};
  RecoveryRules rules{
    .max_restarts = 3, .lost_node = LostNode::shrink, .nodes = 2};
  EXPECT_EQ(decide_recovery(attempts, rules).without_node, 1u);
  rules.nodes = 1;
  EXPECT_FALSE(decide_recovery(attempts, rules).without_node);
}

TEST(LostNode, TheLastOneIsNotTriedForEver) {
  std::vector attempts{lost(1, 3, 2)};
  const RecoveryRules rules{
    .max_restarts = 2, .lost_node = LostNode::shrink, .nodes = 1};
  for (int i = 0; i < 3; ++i)
    attempts.push_back(without(0));
  EXPECT_THAT(decide_recovery(attempts, rules).reason, HasSubstr("gave up"));
}

TEST(LostNode, IsAnOrdinaryFailureUnlessTheSettingsSayOtherwise) {
  std::vector attempts{lost(1, 3, 2), without(1)};
  const RecoveryRules rules{.max_restarts = 2, .nodes = 2};
  const auto decision = decide_recovery(attempts, rules);
  EXPECT_TRUE(decision.recovers && decision.wait == 0s
              && !decision.without_node);
  attempts.push_back(without(1));
  EXPECT_THAT(decide_recovery(attempts, rules).reason, HasSubstr("gave up"));
}

TEST(LostNode, OneThatNeverCameIsAWrongSetting) {
  EXPECT_FALSE(decide_recovery(
                 std::vector{without(1)},
                 {.max_restarts = 3, .lost_node = LostNode::wait, .nodes = 2})
                 .recovers);
}

} // namespace
} // namespace troupe::plans
