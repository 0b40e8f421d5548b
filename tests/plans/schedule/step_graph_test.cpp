#include "config/base/error.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/schedule/task_tracker.hpp"

#include "tests/support/plans/support.hpp"
#include "tests/support/plans/task_needs.hpp"
#include <gmock/gmock.h>

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace troupe::plans {
namespace {

TEST(StepGraph, TrainWaitsForEveryAdvantage) {
  const auto workflow = make_ppo();
  const auto graph = graph_of(workflow, plan_all(workflow, on(0, 0), 1));
  EXPECT_EQ(graph.tasks.size(), workflow.calls.size()) << "no moves";
  EXPECT_THAT(needs_of(graph, "actor_train"), Contains("advantages -0 data"));
  EXPECT_THAT(needs_of(graph, "advantages"),
              AllOf(Contains("rew_inf -0 data"), Contains("ref_inf -0 data"),
                    Contains("critic_inf -0 data")));
}

TEST(StepGraph, ARoundWaitsForTheDecisionAfterTheOneBefore) {
  const auto workflow = make_grpo([](Settings& s) {
    s.algorithm.group.rounds = 3;
    s.reward.kind = "rule";
  });
  const auto graph = graph_of(workflow, plan_all(workflow, on(0, 1), 2));
  EXPECT_THAT(needs_of(graph, "actor_gen[0]"),
              Not(Contains(HasSubstr("keep_groups"))));
  EXPECT_THAT(needs_of(graph, "actor_gen[2]"),
              Contains("keep_groups[1] -0 data"));
  EXPECT_THAT(needs_of(graph, "rewards[2]"),
              AllOf(Contains("actor_gen[2] -0 data"),
                    Not(Contains("actor_gen[1] -0 data"))));
  EXPECT_THAT(
    needs_of(graph, "keep_groups[2]"),
    AllOf(Contains("rewards[2] -0 data"), Contains("keep_groups[1] -0 order")));
  for (const char* call : {"ref_inf", "advantages", "actor_train"})
    EXPECT_THAT(needs_of(graph, call), Contains("keep_groups[2] -0 data"))
      << call;
  const auto& last = graph.tasks[graph.index_of("actor_gen[2]")];
  EXPECT_EQ(last.part.round, 2U);
  EXPECT_EQ(last.part.chunks, 1U) << "a round has all samples of its own rows";
}

TEST(StepGraph, OnOneReplicaGenerationFollowsTheLastTraining) {
  const auto workflow = make_ppo();
  const auto graph = graph_of(workflow, plan_all(workflow, on(0, 0), 1));
  EXPECT_THAT(needs_of(graph, "actor_gen"), Contains("actor_train -1 version"));
  EXPECT_THAT(needs_of(graph, "critic_train"), Contains("critic_inf -0 data"));
}

TEST(StepGraph, ANewVersionMovesBeforeItsReaderAndAfterOldReaders) {
  const auto workflow = make_ppo();
  const auto graph = graph_of(workflow, plan_apart(workflow));
  const auto& move = graph.tasks[graph.index_of("actor@actor_gen")];
  EXPECT_EQ(move.kind, TaskKind::move);
  EXPECT_EQ(move.devices, ranks(0, 3));
  EXPECT_THAT(needs_of(graph, "actor@actor_gen"),
              AllOf(Contains("actor_train -1 version"),
                    Contains("actor_gen -1 write after read")));
  EXPECT_THAT(needs_of(graph, "actor_gen"),
              Contains("actor@actor_gen -0 version"));
  EXPECT_THAT(needs_of(graph, "actor_train"),
              Contains("actor@actor_gen -0 write after read"));
}

TEST(StepGraph, FrozenRolesNeverMove) {
  const auto workflow = make_ppo();
  auto plan = plan_apart(workflow);
  plan.calls["ref_inf"] = on(2, 3);
  for (const auto& task : graph_of(workflow, plan).tasks)
    EXPECT_TRUE(task.kind == TaskKind::call || task.role == "actor");
}

TEST(StepGraph, WithALagACallReadsWeightsMovedInAnEarlierStep) {
  const auto workflow = make_ppo();
  auto plan = plan_apart(workflow);
  for (const std::uint32_t lag : {1u, 2u}) {
    plan.lag["actor_gen"] = lag;
    const auto graph = graph_of(workflow, plan);
    EXPECT_EQ(graph.max_lag, lag);
    EXPECT_EQ(graph.tasks[graph.index_of("actor@actor_gen")].lag, 0u);
    EXPECT_THAT(
      needs_of(graph, "actor_gen"),
      AllOf(Contains("actor@actor_gen -" + std::to_string(lag) + " version"),
            Not(Contains("actor_train -1 version"))));
    // every step has its move, even the last one: a checkpoint needs it
    EXPECT_THAT(needs_of(graph, "actor@actor_gen"),
                AllOf(Contains("actor_train -1 version"),
                      Contains(lag == 1 ? "actor_gen -0 write after read"
                                        : "actor_gen --1 write after read")));
    EXPECT_THAT(needs_of(graph, "actor_train"),
                Contains("actor@actor_gen -0 write after read"));
  }
}

TEST(StepGraph, SlicesAreTasksThatLagOneStepMoreThanTheNext) {
  const auto workflow = make_ppo();
  auto plan = plan_apart(workflow);
  plan.calls["actor_gen"].slices = 2;
  const auto graph = graph_of(workflow, plan);
  EXPECT_EQ(graph.max_lag, 1u);
  EXPECT_EQ(graph.tasks[graph.index_of("actor_gen/slice0")].lag, 1u);
  EXPECT_EQ(graph.tasks[graph.index_of("actor_gen/slice1")].lag, 0u);
  EXPECT_THAT(needs_of(graph, "actor_gen/slice0"),
              AllOf(Contains("actor@actor_gen -1 version"),
                    Contains("actor_gen/slice0 -1 order")));
  // what shares its batch comes first: the newest step's first slice
  EXPECT_THAT(needs_of(graph, "actor_gen/slice1"),
              AllOf(Contains("actor@actor_gen -0 version"),
                    Contains("actor_gen/slice0 -0 data"),
                    Contains("actor_gen/slice0 --1 order")));
  EXPECT_THAT(needs_of(graph, "actor@actor_gen"),
              AllOf(Contains("actor_gen/slice0 -0 write after read"),
                    Contains("actor_gen/slice1 -1 write after read")));
  EXPECT_THAT(needs_of(graph, "rew_inf"),
              AllOf(Contains("actor_gen/slice1 -0 data"),
                    Not(Contains(HasSubstr("slice0")))));
}

TEST(StepGraph, AStepEndsAfterTheSlicesOfLaterStepsThatItsWeightsMake) {
  const auto workflow = make_ppo();
  auto plan = plan_apart(workflow);
  plan.calls["actor_gen"].slices = 3;
  const auto graph = graph_of(workflow, plan);
  const auto ahead = steps_ahead(graph);
  EXPECT_EQ(ahead[graph.index_of("actor_gen/slice0")], 2u);
  EXPECT_EQ(ahead[graph.index_of("actor_gen/slice1")], 1u);
  EXPECT_EQ(ahead[graph.index_of("actor_gen/slice2")], 0u);
  EXPECT_EQ(ahead[graph.index_of("actor_train")], 0u);
}

TEST(StepGraph, OnItsHomeASliceReadsTheWeightsBeforeTheyChange) {
  const auto workflow = make_ppo();
  auto plan = plan_all(workflow, on(0, 0), 1);
  plan.calls["actor_gen"].slices = 2;
  const auto graph = graph_of(workflow, plan);
  EXPECT_THAT(needs_of(graph, "actor_gen/slice0"),
              Contains("actor_train -2 version"));
  EXPECT_THAT(needs_of(graph, "actor_train"),
              Contains("actor_gen/slice0 --1 write after read"));
}

TEST(StepGraph, VersionsFollowTheLag) {
  EXPECT_EQ(version_for(StepId{0}, 1), Version{0});
  EXPECT_EQ(version_for(StepId{1}, 1), Version{0});
  EXPECT_EQ(version_for(StepId{5}, 1), Version{4});
  EXPECT_EQ(version_for(StepId{5}, 0), Version{5});
}

TEST(StepGraph, ALaggedReaderOfNewerRowsIsRefused) {
  // actor_inf reads what actor_gen (lag 0) writes, yet must run before the
  // training that makes actor_gen's version.
  const auto workflow
    = make_ppo([](Settings& s) { s.algorithm.old_logprobs = "recompute"; });
  auto plan = plan_all(workflow, on(0, 0), 1);
  plan.lag["actor_inf"] = 1;
  EXPECT_THAT(refusal_of([&] { graph_of(workflow, plan); }),
              AllOf(HasSubstr("a step that waits for itself"),
                    HasSubstr("actor_inf of step"),
                    HasSubstr("actor_train of step")));
}

TEST(StepGraph, SeveralTrainCallsOfARoleFollowEachOther) {
  auto workflow = make_ppo();
  auto again = workflow.call("actor_train");
  again.name = "actor_train_2";
  workflow.calls.push_back(again);
  const auto graph = graph_of(workflow, plan_all(workflow, on(0, 0), 1));
  EXPECT_THAT(needs_of(graph, "actor_train_2"),
              Contains("actor_train -0 version"));
  EXPECT_THAT(needs_of(graph, "actor_gen"),
              Contains("actor_train_2 -1 version"));
}

TEST(TaskTracker, ATaskThatIsNotReadyCannotFinish) {
  const auto workflow = make_ppo();
  const auto graph = graph_of(workflow, plan_all(workflow, on(0, 0), 1));
  TaskTracker tracker(graph, StepId{0}, StepId{1});
  std::vector<TaskRef> ready;
  tracker.open_step(ready);
  EXPECT_EQ(ready.size(), 1u);
  EXPECT_THROW(tracker.finish({1, StepId{0}}, ready), InvariantError);
  tracker.finish({0, StepId{0}}, ready);
  EXPECT_THROW(tracker.finish({0, StepId{0}}, ready), InvariantError);
}

} // namespace
} // namespace troupe::plans
