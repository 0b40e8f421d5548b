// Updates of servers as tasks of a step (rollout.engine).
#include "plans/schedule/schedule.hpp"
#include "plans/schedule/server_updates.hpp"

#include "tests/support/plans/support.hpp"
#include "tests/support/plans/task_needs.hpp"
#include <gmock/gmock.h>

#include <algorithm>

using ::testing::Contains;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

namespace troupe::plans {
namespace {

constexpr const char* update = "update actor@actor_gen";

Workflow served_ppo() {
  auto workflow = make_ppo();
  workflow.calls.front().by.servers = true;
  return workflow;
}

bool has(const StepGraph& graph, const std::string& task) {
  return std::ranges::find(graph.tasks, task, &TaskTemplate::name)
         != graph.tasks.end();
}

/// Returns the names of the tasks of step 1, in the order in which a schedule
/// starts them.
std::vector<std::string> started_in_step_one(const StepGraph& graph) {
  Schedule schedule(graph, StepId{0}, StepId{3});
  std::vector<std::string> names;
  auto open = schedule.start();
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (open[i].step == StepId{1})
      names.push_back(graph.tasks[open[i].task].name);
    for (const auto next : schedule.finished(open[i]))
      open.push_back(next);
  }
  EXPECT_TRUE(schedule.all_done());
  return names;
}

TEST(ServerUpdates, AnUpdateFollowsTheTrainingAndComesBeforeItsCall) {
  const auto workflow = served_ppo();
  const auto graph = graph_of(workflow, plan_all(workflow, on(0, 1), 2));
  const auto& task = graph.tasks[graph.index_of(update)];
  EXPECT_EQ(task.kind, TaskKind::update);
  EXPECT_EQ(task.devices, ranks(0, 1));
  EXPECT_EQ(task.source, task.target);
  EXPECT_THAT(
    needs_of(graph, update),
    UnorderedElementsAre("actor_train -1 version", "actor_gen -1 order"));
  EXPECT_THAT(needs_of(graph, "actor_gen"),
              Contains(std::string(update) + " -0 version"));
}

TEST(ServerUpdates, OnAnotherReplicaItFollowsTheMove) {
  const auto workflow = served_ppo();
  auto plan = plan_apart(workflow);
  for (const bool kept : {false, true}) {
    plan.replicas["actor@actor_gen"] = kept;
    const auto graph = graph_of(workflow, plan);
    EXPECT_THAT(needs_of(graph, update),
                Contains("actor@actor_gen -0 version"));
    const auto names = started_in_step_one(graph);
    const auto at = [&](const char* name) {
      return std::ranges::find(names, name) - names.begin();
    };
    EXPECT_LT(at("actor@actor_gen"), at(update));
    EXPECT_LT(at(update), at("actor_gen"));
  }
}

TEST(ServerUpdates, ALaggedCallHasTheUpdateOfItsVersion) {
  const auto workflow = served_ppo();
  auto plan = plan_apart(workflow);
  plan.lag["actor_gen"] = 2;
  const auto graph = graph_of(workflow, plan);
  const auto task = graph.index_of(update);
  EXPECT_EQ(graph.tasks[task].lag, 2U);
  EXPECT_THAT(needs_of(graph, update), Contains("actor@actor_gen -2 version"));
  EXPECT_EQ(steps_ahead(graph)[task],
            steps_ahead(graph)[graph.index_of("actor_gen")]);
  EXPECT_GT(steps_ahead(graph)[task], 0U);
}

TEST(ServerUpdates, OffloadedWeightsAreLoadedBeforeIt) {
  const auto workflow = served_ppo();
  auto plan = plan_all(workflow, on(0, 1), 2);
  plan.roles["actor"].offload_weights = true;
  const auto graph = graph_of(workflow, plan);
  EXPECT_THAT(needs_of(graph, update),
              Contains("reload actor@actor_gen -0 version"));
  EXPECT_THAT(needs_of(graph, "reload actor@actor_gen"),
              Not(Contains(std::string(update) + " -0 version")));
  const auto names = started_in_step_one(graph);
  const auto reload = std::ranges::find(names, "reload actor@actor_gen");
  ASSERT_LE(3, names.end() - reload);
  EXPECT_EQ(*(reload + 1), update);
  EXPECT_EQ(*(reload + 2), "actor_gen") << "nothing finds the planes there";
}

TEST(ServerUpdates, OurOwnEngineHasNone) {
  const auto own = make_ppo();
  EXPECT_FALSE(has(graph_of(own, plan_all(own, on(0, 1), 2)), update));
}

} // namespace
} // namespace troupe::plans
