#include "plans/presets/presets.hpp"
#include "plans/schedule/step_graph.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/support.hpp"

namespace troupe::plans {
namespace {

bool needs(const StepGraph& graph, const char* task, const char* other,
           std::int32_t steps_back = 0) {
  for (const auto& need : graph.tasks[graph.index_of(task)].needs)
    if (need.task == graph.index_of(other) && need.steps_back == steps_back)
      return true;
  return false;
}

StepGraph chunked_graph(int generating, int scoring) {
  const auto ppo = make_ppo();
  auto plan = plan_apart(ppo);
  plan.calls["actor_gen"].chunks = generating;
  plan.calls["rew_inf"].chunks = scoring;
  return make_step_graph(ppo, plan, replicas_of(ppo, plan));
}

TEST(StepGraphChunks, AScoringChunkNeedsOnlyTheSamplesItReads) {
  const auto graph = chunked_graph(4, 2);
  EXPECT_TRUE(needs(graph, "rew_inf[0]", "actor_gen[0]"));
  EXPECT_TRUE(needs(graph, "rew_inf[0]", "actor_gen[1]"));
  EXPECT_FALSE(needs(graph, "rew_inf[0]", "actor_gen[2]"));
  EXPECT_TRUE(needs(graph, "rew_inf[1]", "actor_gen[3]"));
  const auto odd = chunked_graph(2, 3);
  EXPECT_TRUE(needs(odd, "rew_inf[1]", "actor_gen[0]"));
  EXPECT_TRUE(needs(odd, "rew_inf[1]", "actor_gen[1]"));
  EXPECT_FALSE(needs(odd, "rew_inf[2]", "actor_gen[0]"));
}

TEST(StepGraphChunks, WholeCallsJoinAllChunks) {
  const auto graph = chunked_graph(3, 2);
  for (const char* chunk : {"actor_gen[0]", "actor_gen[1]", "actor_gen[2]"}) {
    EXPECT_TRUE(needs(graph, "ref_inf", chunk)) << chunk;
    EXPECT_TRUE(needs(graph, "actor_train", chunk)) << chunk;
  }
  EXPECT_TRUE(needs(graph, "advantages", "rew_inf[0]"));
  EXPECT_TRUE(needs(graph, "advantages", "rew_inf[1]"));
}

TEST(StepGraphChunks, ChunksFollowEachOtherAndVersionsWaitForTheLast) {
  const auto graph = chunked_graph(3, 1);
  EXPECT_TRUE(needs(graph, "actor_gen[1]", "actor_gen[0]"));
  EXPECT_TRUE(needs(graph, "actor_gen[0]", "actor_gen[2]", 1));
  EXPECT_TRUE(needs(graph, "actor_gen[0]", "actor@actor_gen"));
  EXPECT_TRUE(needs(graph, "actor@actor_gen", "actor_gen[2]", 1));
  EXPECT_FALSE(needs(graph, "actor@actor_gen", "actor_gen[0]", 1));
}

} // namespace
} // namespace troupe::plans
