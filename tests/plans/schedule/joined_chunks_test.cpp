#include "plans/schedule/joined_chunks.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

using ::testing::ElementsAre;

TaskRef at(const StepGraph& graph, const char* name, std::uint32_t step = 0) {
  return {graph.index_of(name), StepId(step)};
}

/// Returns the schedule once the weights are at the generation replica.
std::vector<TaskRef> started_after_move(Schedule& schedule) {
  const auto move = schedule.start();
  return schedule.finished(move.at(0));
}

/// PPO in chunks, with generation on its own devices.
struct Chunked {
  Chunked() {
    plan.calls["actor_gen"] = on(0, 1);
    plan.calls["actor_gen"].chunks = 4;
    plan.calls["rew_inf"] = on(2, 2);
    plan.calls["rew_inf"].chunks = 4;
    graph = make_step_graph(ppo, plan, replicas_of(ppo, plan));
  }
  std::vector<TaskRef> joined(TaskRef first,
                              const std::vector<TaskRef>& followers) const {
    return joined_chunks(graph, ppo.call(graph.tasks[first.task].call), first,
                         followers);
  }

  Workflow ppo = make_ppo();
  ExecutionPlan plan = plan_apart(ppo);
  StepGraph graph;
};

TEST(JoinedChunks, ConsecutiveChunksOnAllDevicesAreOneBatch) {
  const Chunked run;
  Schedule schedule(run.graph, StepId(0), StepId(2));
  const auto started = started_after_move(schedule);
  const auto first = at(run.graph, "actor_gen[0]");
  ASSERT_THAT(started, ::testing::Contains(first));
  EXPECT_THAT(run.joined(first, schedule.followers(first)),
              ElementsAre(first, at(run.graph, "actor_gen[1]"),
                          at(run.graph, "actor_gen[2]"),
                          at(run.graph, "actor_gen[3]")));
}

TEST(JoinedChunks, AnotherTaskInBetweenEndsTheBatch) {
  const Chunked run;
  const auto first = at(run.graph, "actor_gen[1]");
  const auto next = at(run.graph, "actor_gen[2]");
  EXPECT_THAT(run.joined(first, {next, at(run.graph, "rew_inf[0]"),
                                 at(run.graph, "actor_gen[3]")}),
              ElementsAre(first, next));
  EXPECT_THAT(run.joined(first, {at(run.graph, "actor_gen[3]")}),
              ElementsAre(first));
  EXPECT_THAT(run.joined(first, {at(run.graph, "actor_gen[2]", 1)}),
              ElementsAre(first));
}

TEST(JoinedChunks, AChunkThatNeedsMoreThanTheFirstStartsAnotherBatch) {
  Chunked run;
  const auto first = at(run.graph, "actor_gen[0]");
  const auto next = at(run.graph, "actor_gen[1]");
  const Need shared{run.graph.index_of("ref_inf"), 1, Edge::data};
  run.graph.tasks[next.task].needs.push_back(shared);
  EXPECT_THAT(run.joined(first, {next}), ElementsAre(first));
  run.graph.tasks[first.task].needs.push_back(shared);
  EXPECT_THAT(run.joined(first, {next}), ElementsAre(first, next));
}

TEST(JoinedChunks, SlicesOfOneVersionAreOneBatchTheNewestStepFirst) {
  Chunked run;
  run.plan.calls["actor_gen"] = on(0, 1);
  run.plan.calls["actor_gen"].slices = 3;
  run.graph
    = make_step_graph(run.ppo, run.plan, replicas_of(run.ppo, run.plan));
  const auto newest = at(run.graph, "actor_gen/slice0", 4);
  const auto middle = at(run.graph, "actor_gen/slice1", 3);
  const auto oldest = at(run.graph, "actor_gen/slice2", 2);
  EXPECT_THAT(run.joined(newest, {middle, oldest}),
              ElementsAre(newest, middle, oldest));
  EXPECT_THAT(run.joined(newest, {oldest}), ElementsAre(newest));
  EXPECT_THAT(run.joined(middle, {oldest, at(run.graph, "rew_inf[0]", 2)}),
              ElementsAre(middle, oldest));
  // another slice of the same step needs its rows; another version, weights
  EXPECT_THAT(run.joined(newest, {at(run.graph, "actor_gen/slice1", 4)}),
              ElementsAre(newest));
  EXPECT_THAT(run.joined(newest, {at(run.graph, "actor_gen/slice0", 5)}),
              ElementsAre(newest));
}

TEST(JoinedChunks, TheOrderOfAPlanPutsSlicesOfOneVersionInARow) {
  Chunked run;
  run.plan = plan_apart(run.ppo);
  run.plan.calls["actor_gen"].slices = 2;
  run.graph
    = make_step_graph(run.ppo, run.plan, replicas_of(run.ppo, run.plan));
  Schedule schedule(run.graph, StepId(0), StepId(6));
  std::vector<TaskRef> running = schedule.start();
  int whole = 0;
  while (!running.empty()) {
    const auto task = running.front();
    running.erase(running.begin());
    if (run.graph.tasks[task.task].name == "actor_gen/slice0")
      whole += run.joined(task, schedule.followers(task)).size() == 2;
    for (const auto next : schedule.finished(task))
      running.push_back(next);
  }
  EXPECT_EQ(whole, 6) << "all but the first slice of step 0";
}

TEST(JoinedChunks, OnlyGenerationWithoutAUserActorIsJoined) {
  Chunked run;
  const auto scored = at(run.graph, "rew_inf[0]");
  EXPECT_THAT(run.joined(scored, {at(run.graph, "rew_inf[1]")}),
              ElementsAre(scored));
  run.ppo.calls.front().by.user_actor = true;
  ASSERT_EQ(run.ppo.calls.front().name, "actor_gen");
  const auto first = at(run.graph, "actor_gen[0]");
  EXPECT_THAT(run.joined(first, {at(run.graph, "actor_gen[1]")}),
              ElementsAre(first));
}

TEST(JoinedChunks, JoinedTasksAreThoseThatAllDevicesRunNext) {
  const Chunked run;
  auto plan = run.plan;
  plan.calls["rew_inf"] = on(0, 0);
  plan.calls["rew_inf"].chunks = 4;
  const auto graph = make_step_graph(run.ppo, plan, replicas_of(run.ppo, plan));
  Schedule shared(graph, StepId(0), StepId(1));
  started_after_move(shared);
  // device 0 scores a chunk before it continues to generate, device 1 does not
  const auto first = at(graph, "actor_gen[0]");
  const auto positions
    = [&](const char* name) { return shared.position(at(graph, name)); };
  const bool scores_first = positions("rew_inf[0]") < positions("actor_gen[1]");
  for (const auto ema_model : shared.followers(first))
    EXPECT_EQ(graph.tasks[ema_model.task].call, "actor_gen");
  EXPECT_EQ(shared.followers(first).empty(), scores_first);
}

} // namespace
} // namespace troupe::plans
