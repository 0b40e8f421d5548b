#include "plans/presets/presets.hpp"
#include "plans/search/local_search.hpp"
#include "plans/simulate/simulator.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

using ::testing::ElementsAre;

namespace troupe::plans {
namespace {

double scheduled_s(const Workflow& workflow, const ExecutionPlan& plan,
                   const std::function<double(const TaskTemplate&)>& duration) {
  const auto graph
    = make_step_graph(workflow, plan, replicas_of(workflow, plan));
  std::vector<double> durations;
  for (const auto& task : graph.tasks)
    durations.push_back(duration(task));
  const auto steps = steps_to_simulate(graph);
  return steady_step_s(graph, run_schedule(graph, {durations}, steps), steps);
}

double one_a_call(const TaskTemplate& task) {
  return task.kind == TaskKind::call && !task.devices.empty()
           ? 1.0 / task.part.chunks
           : 0.0;
}

TEST(Simulator, SharedDevicesSerialiseAndDisjointOnesOverlap) {
  const auto ppo = make_ppo();
  EXPECT_DOUBLE_EQ(scheduled_s(ppo, plan_all(ppo, on(0, 3), 4), one_a_call), 6);
  auto plan = plan_all(ppo, on(0, 3), 4);
  plan.calls["rew_inf"] = on(0, 0);
  plan.calls["ref_inf"] = on(1, 1);
  plan.calls["critic_inf"] = on(2, 3);
  plan.calls["actor_train"] = on(0, 1);
  plan.calls["critic_train"] = on(2, 3);
  EXPECT_DOUBLE_EQ(scheduled_s(ppo, plan, one_a_call), 3);
}

TEST(Simulator, ALagOverlapsGenerationWithTraining) {
  const auto ppo = make_ppo();
  auto plan = preset("separation", ppo, {.devices_per_node = 4});
  EXPECT_DOUBLE_EQ(scheduled_s(ppo, plan, one_a_call), 6);
  plan.lag["actor_gen"] = 1;
  // Generation and a scoring call overlap the two training calls before them.
  EXPECT_NEAR(scheduled_s(ppo, plan, one_a_call), 4, 1e-9);
}

TEST(Simulator, ChunksOverlapScoringWithGeneration) {
  const auto ppo = make_ppo();
  auto plan = preset("interleaving", ppo, {.devices_per_node = 4});
  EXPECT_DOUBLE_EQ(scheduled_s(ppo, plan, one_a_call), 1 + 0.25 + 1);
  for (auto& [name, placement] : plan.calls)
    placement.chunks = 1;
  EXPECT_DOUBLE_EQ(scheduled_s(ppo, plan, one_a_call), 1 + 1 + 1);
}

/// Seconds of task `name` in the first step, where generation and scoring share
/// a device and a chunk takes 1 s if it joins the batch before it, else 10.
double second_chunk_s(double scoring_s) {
  const auto ppo = make_ppo();
  auto plan = plan_all(ppo, on(0, 0), 1);
  for (const auto* name : {"actor_gen", "rew_inf"})
    plan.calls[name].chunks = 2;
  const auto graph = make_step_graph(ppo, plan, replicas_of(ppo, plan));
  TaskSeconds seconds;
  for (const auto& task : graph.tasks)
    seconds.all.push_back(task.call == "rew_inf" ? scoring_s : 1);
  seconds.begins_batch = seconds.all;
  const auto second = graph.index_of("actor_gen[1]");
  seconds.begins_batch[second] = 10;
  for (const auto& times : run_schedule(graph, seconds, 1))
    if (times.task.task == second)
      return times.end_s - times.start_s;
  return 0;
}

TEST(Simulator, AChunkAfterAnotherTaskStartsItsOwnBatch) {
  EXPECT_DOUBLE_EQ(second_chunk_s(0.5), 1) << "it comes right behind the first";
  EXPECT_DOUBLE_EQ(second_chunk_s(2), 10) << "scoring has the longer path";
}

TEST(Simulator, SearchesCountBatchesLikeTheSchedule) {
  auto problem = make_problem(shape_7b(), 1, 4);
  problem.hardware.mem_bytes = 0;
  problem.lengths = Lengths(128, 200, 1024);
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {.chunks = true});
  PointCost cost(space, {});
  Walk walk(space, cost, {}, 3);
  int cut = 0;
  for (int i = 0; i < 200; ++i) {
    const auto point = walk.random_point();
    const auto plan = plan_at(space, point, {});
    const auto slow = simulate_step_s(problem, costs, plan);
    EXPECT_NEAR(cost.step_s(point), slow, 1e-9 * slow) << print(plan);
    cut += plan.calls.at("actor_gen").chunks > 1;
  }
  EXPECT_GT(cut, 20);
}

/// PPO of 7B models on 4 devices, where the weights of ref are in host memory.
struct Reloading {
  PlanProblem problem = make_problem(shape_7b(), 1, 4);
  ExecutionPlan plan = plan_all(problem.workflow, on(0, 3), 4);

  explicit Reloading(const Placement& ref) {
    problem.hardware.mem_bytes = 0;
    plan.calls["ref_inf"] = ref;
  }
  Simulation run(bool offloads) {
    plan.roles["ref"].offload_weights = offloads;
    return simulate(problem, CostModel(problem), plan);
  }
  double reload_s() const {
    return double(weight_bytes(shape_7b(), DType::bf16))
           / problem.hardware.host_Bps;
  }
};

double seconds_of(const Simulation& run, const char* task) {
  return run.durations_s[run.graph.index_of(task)];
}

TEST(Simulator, AReloadIsASeparateTask) {
  Reloading ppo(on(0, 3));
  const auto there = ppo.run(false);
  const auto away = ppo.run(true);
  EXPECT_EQ(seconds_of(away, "ref_inf"), seconds_of(there, "ref_inf"));
  EXPECT_NEAR(seconds_of(away, "reload ref@ref_inf"), ppo.reload_s(),
              0.01 * ppo.reload_s());
  EXPECT_EQ(seconds_of(away, "offload ref@ref_inf"), 0)
    << "what did not change is in host memory already";
  EXPECT_NEAR(away.step_s - there.step_s, ppo.reload_s(),
              0.01 * ppo.reload_s());
}

TEST(Simulator, AReloadRunsWhileItsDeviceWaitsForRows) {
  Reloading ppo(on(3, 3));
  for (const auto* call :
       {"actor_gen", "rew_inf", "critic_inf", "actor_train", "critic_train"})
    ppo.plan.calls[call] = on(0, 2);
  EXPECT_LT(ppo.reload_s(), seconds_of(ppo.run(true), "actor_gen"));
  EXPECT_DOUBLE_EQ(ppo.run(true).step_s, ppo.run(false).step_s);
}

TEST(Simulator, MomentsAreLoadedForTrainingAndOffloadedAfterIt) {
  Reloading ppo(on(0, 3));
  ppo.plan.roles["actor"].offload_optimizer = true;
  const auto run = ppo.run(false);
  const auto moments_s
    = 4 * ppo.reload_s(); // two of fp32 in addition to weights of bf16
  for (const auto* task :
       {"reload actor@actor_train", "offload actor@actor_train"})
    EXPECT_NEAR(seconds_of(run, task), moments_s, 0.01 * moments_s) << task;
}

TEST(Simulator, ReportsTheWholeTimeline) {
  const auto problem = make_problem(shape_7b(), 1, 8);
  const CostModel costs(problem);
  const auto plan
    = preset("openrlhf", problem.workflow, problem.cluster,
             {.shapes = problem.shapes, .device_memory_bytes = 80'000'000'000});
  auto roomy = problem;
  roomy.hardware.mem_bytes = 0;
  const auto run = simulate(roomy, costs, plan);
  EXPECT_GT(run.step_s, 1);
  EXPECT_GT(run.idle_share, 0.3) << "groups of their own wait a lot";
  EXPECT_GT(run.moved_bytes(), 2 * 13e9) << "two devices generate";
  ASSERT_EQ(run.devices.size(), 8u);
  for (const auto& device : run.devices) {
    EXPECT_NEAR(device.busy_s + device.idle.total_s(), run.step_s,
                1e-6 * run.step_s);
    EXPECT_GT(device.peak_bytes, 1e9);
  }
  EXPECT_THAT(run.critical_path,
              ElementsAre("actor@actor_gen", "actor_gen", "ref_inf",
                          "actor_train", "offload actor@actor_train"));
}

TEST(Simulator, FastAndFullSimulationsAgree) {
  auto problem = make_problem(shape_7b(), 2, 8);
  problem.hardware.mem_bytes = 0;
  const CostModel costs(problem);
  for (const auto& name : preset_names()) {
    const auto plan = preset(name, problem.workflow, problem.cluster,
                             {.shapes = problem.shapes});
    EXPECT_DOUBLE_EQ(simulate(problem, costs, plan).step_s,
                     simulate_step_s(problem, costs, plan))
      << name;
  }
}

TEST(Simulator, AStepIsNoShorterThanItsControlPlane) {
  constexpr double measured_s = 0.024; // processor time of the master
  auto problem = make_problem(shape_tiny(), 1, 64, "laptop");
  problem.sizes.samples_per_step = 256;
  const CostModel costs(problem);
  const auto flat = preset("data_parallel", problem.workflow, problem.cluster);
  const auto run = simulate(problem, costs, flat);
  EXPECT_DOUBLE_EQ(run.master_s, 6 * 64 * problem.hardware.call_device_s);
  EXPECT_GT(run.master_s, measured_s);
  EXPECT_GT(run.step_s, run.master_s) << "calls follow each other";
  auto free = problem;
  free.hardware.call_device_s = 0;
  EXPECT_NEAR(run.step_s - simulate(free, CostModel(free), flat).step_s,
              run.master_s, 1e-9);
}

TEST(Simulator, ConcurrentCallsShareTheMaster) {
  auto problem = make_problem(shape_tiny(), 1, 8, "laptop");
  const auto plan = preset("openrlhf", problem.workflow, problem.cluster,
                           {.shapes = problem.shapes});
  double devices = 0;
  for (const auto& [name, placement] : plan.calls)
    devices += double(placement.devices.size());
  problem.hardware.call_device_s = 1e4; // all else is short
  EXPECT_DOUBLE_EQ(simulate_step_s(problem, CostModel(problem), plan),
                   1e4 * devices);
}

TEST(Simulator, AThousandDevicesFitInOnePlan) {
  auto problem = make_problem(shape_70b(), 128, 8, "h100x8");
  problem.sizes.samples_per_step = 4096;
  problem.hardware.mem_bytes = 0;
  const CostModel costs(problem);
  const auto plan = preset("megatron", problem.workflow, problem.cluster,
                           {.shapes = problem.shapes});
  const auto run = simulate(problem, costs, plan);
  EXPECT_EQ(run.devices.size(), 1024u);
  EXPECT_LT(run.idle_share, 1e-6);
}

} // namespace
} // namespace troupe::plans
