#include "plans/memory/memory_model.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/weights/residency.hpp"

#include "tests/support/plans/problem_support.hpp"
#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;

std::vector<std::string> tasks_needed(const StepGraph& graph,
                                      const std::string& name) {
  std::vector<std::string> texts;
  for (const auto& need : graph.tasks[graph.index_of(name)].needs)
    texts.push_back(graph.tasks[need.task].name + " -"
                    + std::to_string(need.steps_back));
  return texts;
}

struct Residency {
  Workflow workflow = make_ppo();
  ExecutionPlan plan = plan_apart(workflow);

  StepGraph graph() const {
    return make_step_graph(workflow, plan, replicas_of(workflow, plan));
  }
  bool has(const std::string& task) const {
    const auto all = graph();
    return std::ranges::find(all.tasks, task, &TaskTemplate::name)
           != all.tasks.end();
  }
  /// Returns the residency on the first device of `call`.
  DeviceMemory memory_at(const std::string& call) const {
    std::map<std::string, ModelShape> shapes;
    for (const auto& role : workflow.roles)
      shapes[role.name] = shape_tiny();
    const auto replicas = replicas_of(workflow, plan);
    return device_memory(workflow, plan, replicas, shapes, {}, {})
      .at(plan.calls.at(call).devices.front().value);
  }
  std::uint64_t planes_for(const std::string& call) const {
    const auto tasks = memory_at(call).tasks;
    return std::ranges::find(tasks, call, &TaskMemory::task)->plane_bytes;
  }
};

TEST(ReplicaResidency, UnkeptReplicasAreDroppedAfterTheirLastReader) {
  Residency residency;
  const auto graph = residency.graph();
  EXPECT_THAT(tasks_needed(graph, "drop actor@actor_gen"),
              ElementsAre("actor_gen -0"));
  EXPECT_THAT(tasks_needed(graph, "actor@actor_gen"),
              Contains("drop actor@actor_gen -1"));
  residency.plan.replicas["actor@actor_gen"] = true;
  EXPECT_FALSE(residency.has("drop actor@actor_gen"));
}

TEST(ReplicaResidency, ALaggedReplicaHoldsItsVersionFromStepToStep) {
  Residency residency;
  residency.plan.lag["actor_gen"] = 1;
  EXPECT_FALSE(residency.has("drop actor@actor_gen"));
}

TEST(ReplicaResidency,
     OffloadedWeightsAreLoadedBeforeTheirCallAndOffloadedAfterIt) {
  Residency residency;
  residency.plan.roles["ref"].offload_weights = true;
  const auto graph = residency.graph();
  EXPECT_THAT(tasks_needed(graph, "reload ref@ref_inf"),
              ElementsAre("ref_inf -1"))
    << "not for the call's rows";
  EXPECT_THAT(tasks_needed(graph, "ref_inf"),
              Contains("reload ref@ref_inf -0"));
  EXPECT_THAT(tasks_needed(graph, "offload ref@ref_inf"),
              ElementsAre("ref_inf -0"));
}

TEST(ReplicaResidency, AChunkedCallKeepsItsWeightsFromItsFirstChunkToItsLast) {
  Residency residency;
  residency.plan.roles["ref"].offload_weights = true;
  residency.plan.calls["ref_inf"].chunks = 3;
  const auto graph = residency.graph();
  EXPECT_THAT(tasks_needed(graph, "ref_inf[0]"),
              Contains("reload ref@ref_inf -0"));
  EXPECT_THAT(tasks_needed(graph, "offload ref@ref_inf"),
              ElementsAre("ref_inf[2] -0"));
}

TEST(ReplicaResidency, AnOffloadedOptimizerServesTrainingsOnly) {
  Residency residency;
  residency.plan.roles["actor"].offload_optimizer = true;
  EXPECT_TRUE(residency.has("reload actor@actor_train"));
  EXPECT_FALSE(residency.has("reload actor@actor_gen"));
  residency.plan.roles["ref"].offload_optimizer = true; // it has none
  EXPECT_FALSE(residency.has("reload ref@ref_inf"));
}

TEST(ReplicaResidency, TrainedWeightsAreLoadedOnceTheirVersionExists_I4) {
  Residency residency;
  residency.plan = plan_all(residency.workflow, on(0, 1), 2);
  residency.plan.roles["actor"].offload_weights = true;
  const auto graph = residency.graph();
  EXPECT_THAT(tasks_needed(graph, "reload actor@actor_gen"),
              ElementsAre("actor_gen -1", "actor_train -1"));
  EXPECT_THAT(tasks_needed(graph, "reload actor@actor_train"),
              ElementsAre("actor_train -1"));
}

TEST(ReplicaResidency, MovesReadTheHostCopyOfTheLastTraining) {
  Residency residency;
  residency.plan.roles["actor"].offload_weights = true;
  EXPECT_THAT(tasks_needed(residency.graph(), "actor@actor_gen"),
              Contains("offload actor@actor_train -1"));
}

TEST(ReplicaResidency, MemoryCountsOffloadedPlanesOnlyForTheirCalls) {
  Residency residency;
  const std::map<std::string, ModelShape> shapes
    = {{"actor", shape_tiny()}, {"ref", shape_tiny()}};
  const auto resident = [&](Rank device) {
    const auto replicas = replicas_of(residency.workflow, residency.plan);
    return device_memory(residency.workflow, residency.plan, replicas, shapes,
                         {}, {})
      .at(device.value)
      .resident_bytes();
  };
  const auto ref_on = residency.plan.calls["ref_inf"].devices.front();
  const auto gen_on = residency.plan.calls["actor_gen"].devices.front();
  const auto ref_before = resident(ref_on);
  const auto gen_before = resident(gen_on);
  const auto weights
    = stage_bytes(shape_tiny(), residency.plan.calls["ref_inf"].strategy)
        .front()
        .weights;
  residency.plan.roles["ref"].offload_weights = true;
  EXPECT_EQ(resident(ref_on) + weights, ref_before);
  residency.plan.roles.clear();
  residency.plan.replicas["actor@actor_gen"] = true;
  EXPECT_GT(resident(gen_on), gen_before);
}

TEST(ReplicaResidency, MemoryCountsWhatOthersKeepBetweenChunks) {
  Residency residency;
  const std::map<std::string, ModelShape> shapes = {
    {"actor", shape_tiny()}, {"ref", shape_tiny()}, {"reward", shape_tiny()}};
  const auto rewards_need = [&] {
    const auto replicas = replicas_of(residency.workflow, residency.plan);
    const auto devices = device_memory(residency.workflow, residency.plan,
                                       replicas, shapes, {}, {});
    const auto on = residency.plan.calls["rew_inf"].devices.front();
    const auto& tasks = devices.at(on.value).tasks;
    return std::ranges::find(tasks, "rew_inf", &TaskMemory::task)->bytes;
  };
  residency.plan.roles["ref"].offload_weights = true;
  const auto alone = rewards_need();
  residency.plan.calls["ref_inf"].chunks = 3;
  const auto strategy = residency.plan.calls["ref_inf"].strategy;
  EXPECT_EQ(rewards_need() - alone,
            stage_bytes(shape_tiny(), strategy).front().weights);
}

TEST(ReplicaResidency, MemoryCountsADroppedReplicaBetweenTheChunksOfItsReader) {
  Residency residency;
  residency.plan.calls["actor_gen"].chunks = 3;
  EXPECT_EQ(residency.planes_for("rew_inf"), 0) << "it waits for all of them";
  residency.plan.calls["rew_inf"].chunks = 3;
  const auto strategy = residency.plan.calls["actor_gen"].strategy;
  EXPECT_EQ(residency.planes_for("rew_inf"),
            stage_bytes(shape_tiny(), strategy).front().weights);
}

TEST(ReplicaResidency, MemoryCountsADroppedReplicaFromItsFirstReaderToItsLast) {
  Residency residency;
  residency.workflow
    = make_ppo([](Settings& s) { s.algorithm.old_logprobs = "recompute"; });
  residency.plan = plan_apart(residency.workflow);
  EXPECT_EQ(residency.planes_for("rew_inf"), residency.planes_for("actor_gen"))
    << "beside the recomputing on the same replica";
  EXPECT_EQ(residency.planes_for("critic_inf"), 0) << "elsewhere";
}

TEST(ReplicaResidency, MemoryCountsALaggedCallsWeightsFromTheirMoveOn) {
  Residency residency;
  residency.plan.lag["actor_gen"] = 1;
  const auto held = residency.memory_at("actor_gen").resident_bytes();
  residency.plan.roles["actor"].offload_weights = true;
  EXPECT_EQ(residency.memory_at("actor_gen").resident_bytes(), held);
}

TEST(ReplicaResidency, MemoryCountsAnOffloadedReplicaFromItsMoveOn) {
  Residency residency;
  const std::map<std::string, ModelShape> shapes = {{"actor", shape_tiny()}};
  residency.plan.replicas["actor@actor_gen"] = true;
  residency.plan.roles["actor"].offload_weights = true;
  const auto replicas = replicas_of(residency.workflow, residency.plan);
  const auto devices = device_memory(residency.workflow, residency.plan,
                                     replicas, shapes, {}, {});
  const auto on = residency.plan.calls["actor_gen"].devices.front();
  std::vector<std::string> names;
  for (const auto& task : devices.at(on.value).tasks)
    names.push_back(task.task);
  EXPECT_THAT(names, Contains("actor@actor_gen"));
}

TEST(ReplicaResidency, OnlyGeneratesWhereNothingElseNeedsTheMemory) {
  Residency residency;
  const auto generates_only = [&] {
    const auto replicas = replicas_of(residency.workflow, residency.plan);
    return only_generates(residency.workflow, residency.plan, replicas,
                          replicas[replicas.of_call("actor_gen")]);
  };
  EXPECT_FALSE(generates_only()) << "scoring is on its devices";
  for (const char* call : {"ref_inf", "rew_inf"})
    residency.plan.calls[call] = on(2, 3);
  EXPECT_TRUE(generates_only()) << "its weights are dropped";
  residency.plan.replicas["actor@actor_gen"] = true;
  EXPECT_TRUE(generates_only()) << "its weights stay";
  residency.plan.roles["actor"].offload_weights = true;
  EXPECT_FALSE(generates_only());
  residency.plan.roles.clear();
  residency.plan.calls["ref_inf"] = on(1, 2);
  EXPECT_FALSE(generates_only()) << "scoring is on one of them";
  residency.plan.calls["ref_inf"] = on(2, 3);
  residency.plan.calls["actor_gen"] = on(2, 3);
  EXPECT_FALSE(generates_only()) << "it trains";
}

TEST(ReplicaResidency, ARoleThatScoresItsResponsesDoesNotOnlyGenerate) {
  Residency residency;
  residency.workflow
    = make_ppo([](Settings& s) { s.algorithm.old_logprobs = "recompute"; });
  residency.plan = plan_apart(residency.workflow);
  for (const char* call : {"ref_inf", "rew_inf"})
    residency.plan.calls[call] = on(2, 3);
  const auto replicas = replicas_of(residency.workflow, residency.plan);
  const auto& replica = replicas[replicas.of_call("actor_gen")];
  ASSERT_EQ(replica.calls.size(), 2u);
  EXPECT_FALSE(
    only_generates(residency.workflow, residency.plan, replicas, replica));
}

} // namespace
} // namespace troupe::plans
