#include "plans/cost/cost_model.hpp"
#include "plans/memory/memory_model.hpp"
#include "plans/memory/micro_batches.hpp"
#include "plans/presets/presets.hpp"
#include "plans/weights/layout.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

namespace troupe::plans {
namespace {

TEST(MemoryModel, AStagesBytesAreThoseOfItsLargestShard) {
  const auto shape = llama_shape(6, 192, 512, 6, 3);
  const auto all = parameters(shape);
  for (const char* text :
       {"d1", "d3", "p4", "t3", "d2p3t2", "d4z1", "d4z3", "d2p2t3z3"}) {
    const auto strategy = parse_strategy(text);
    const auto layout
      = make_layout(all, strategy, ranks(0, strategy.num_devices() - 1),
                    DType::bf16, LayoutKind::optimizer);
    std::vector<std::uint64_t> largest(strategy.pp, 0);
    for (const auto& shard : layout.shards)
      largest[shard.where.pp]
        = std::max(largest[shard.where.pp], shard.size_bytes);
    EXPECT_EQ(largest_shards(all, strategy, DType::bf16, LayoutKind::optimizer),
              largest)
      << text;
  }
}

TEST(MemoryModel, FrozenWeightsHaveNeitherGradientsNorMoments) {
  auto shape = shape_7b();
  shape.lora = {.rank = 16, .alpha = 16, .targets = lora_targets(shape)};
  std::uint64_t trained = 0;
  for (const auto& parameter : adapters(shape))
    trained += static_cast<std::uint64_t>(parameter.num_elements());
  EXPECT_LT(trained, num_parameters(shape) / 100);
  const auto stage = stage_bytes(shape, {}, {DType::bf16}).front();
  EXPECT_EQ(stage.weights, 2 * (num_parameters(shape) + trained));
  EXPECT_EQ(stage.resident, 2 * num_parameters(shape));
  EXPECT_EQ(stage.gradients, 2 * trained);
  EXPECT_EQ(stage.optimizer, 12 * trained);
}

TEST(MemoryModel, ARoundedPlaneIsAsLargeAsItsProductsNeed) {
  const auto shape = shape_7b();
  const auto count = num_parameters(shape);
  const auto one = stage_bytes(shape, {}).front();
  const auto two = stage_bytes(shape, {}, {DType::f32, DType::bf16}).front();
  EXPECT_EQ(two.weights, 6 * count);
  EXPECT_EQ(two.rounded, 2 * count);
  EXPECT_EQ(two.gradients, one.gradients);
  EXPECT_EQ(two.optimizer, one.optimizer);
  const auto cut
    = stage_bytes(shape, {.dp = 8, .zero = Zero::z3}, {DType::f32, DType::bf16})
        .front();
  EXPECT_EQ(cut.rounded, 0u) << "rounded when gathered";
  EXPECT_GT(cut.weights,
            stage_bytes(shape, {.dp = 8, .zero = Zero::z3}).front().weights);
}

TEST(MemoryModel, ARoundedPlaneIsWhatGenerationMultiplies) {
  auto problem = make_problem(shape_7b(), 1, 1, "h100x8");
  const auto placement = Placement{.devices = ranks(0, 0)};
  const auto generates = [&](StorageRule rule) {
    problem.sizes.engine = {.packs_weights = true, .storage = rule};
    return active_bytes(CallKind::generate, shape_7b(), DType::bf16, placement,
                        problem.sizes);
  };
  const auto with_copy = generates(StorageRule::host);
  EXPECT_EQ(problem.planes("ref"), WeightPlanes{});
  EXPECT_GT(with_copy - generates(StorageRule::gpu),
            2 * (num_parameters(shape_7b()) * 9 / 10));
  const WeightPlanes both{DType::f32, DType::bf16};
  EXPECT_EQ(problem.planes("actor"), both);
  problem.dtypes["actor"] = DType::f32;
  EXPECT_EQ(problem.planes("actor"), WeightPlanes{});
}

TEST(MemoryModel, FrozenRolesOfAGpuHaveNoMasters) {
  auto problem = make_problem(shape_7b(), 1, 8, "h100x8");
  problem.sizes.engine = {.packs_weights = true, .storage = StorageRule::gpu};
  const auto planes = problem.planes("ref");
  EXPECT_TRUE(planes.has_no_masters);
  EXPECT_FALSE(problem.planes("critic").has_no_masters);
  const auto count = num_parameters(shape_7b());
  const auto bytes = [&](const Strategy& strategy) {
    return stage_bytes(shape_7b(), strategy, planes).front().weights;
  };
  EXPECT_GT(bytes({}), 2 * count) << "norms are stored in fp32 too";
  EXPECT_LT(bytes({}), 2 * count + count / 1000);
  EXPECT_EQ(bytes({.dp = 8, .zero = Zero::z3}),
            stage_bytes(shape_7b(), {.dp = 8, .zero = Zero::z3},
                        {DType::f32, DType::bf16})
              .front()
              .weights)
    << "shards are masters";
  auto call = std::ranges::find(problem.workflow.calls, "ref", &Call::role);
  call->by.servers = true;
  EXPECT_FALSE(problem.planes("ref").has_no_masters) << "a server gets them";
}

std::uint64_t peak_of(const PlanProblem& problem, const ExecutionPlan& plan) {
  const auto report = check_plan(problem, plan);
  std::uint64_t peak = 0;
  for (const auto& device : report.devices)
    peak = std::max(peak, device.peak_bytes);
  EXPECT_TRUE(report.ok()) << report.errors.front().message;
  return peak;
}

TEST(MemoryModel, OffloadShardingAndDroppingLowerThePeak) {
  auto problem = make_problem(shape_7b(), 1, 8, "h200x8");
  problem.hardware.mem_bytes = 0;
  const auto megatron = preset("megatron", problem.workflow, problem.cluster,
                               {.shapes = problem.shapes});
  auto offloaded = megatron;
  offloaded.roles["ref"].offload_weights = true;
  offloaded.roles["reward"].offload_weights = true;
  EXPECT_LT(peak_of(problem, offloaded), peak_of(problem, megatron));
  auto optimizer = megatron;
  optimizer.roles["critic"].offload_optimizer = true;
  EXPECT_LT(peak_of(problem, optimizer), peak_of(problem, megatron));

  auto dropped = megatron;
  dropped.calls["actor_gen"].strategy = parse_strategy("d4t2");
  auto kept = dropped;
  kept.replicas["actor@actor_gen"] = true;
  EXPECT_LT(peak_of(problem, dropped), peak_of(problem, kept));
}

TEST(MemoryModel, MoreMicroBatchesNeedLess) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.mem_bytes = 0;
  auto plan = preset("megatron", problem.workflow, problem.cluster,
                     {.shapes = problem.shapes});
  const auto whole = peak_of(problem, plan);
  for (const char* call : {"actor_train", "critic_train", "ref_inf"})
    plan.calls[call].micro_batches = 8;
  EXPECT_LT(peak_of(problem, plan), whole);
}

TEST(MemoryModel, TextsBesideATrainingTakeMemoryAndTime) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.mem_bytes = 0;
  const auto plan = preset("megatron", problem.workflow, problem.cluster,
                           {.shapes = problem.shapes});
  const auto train = [&](const std::string& name) -> Call& {
    return *std::ranges::find(problem.workflow.calls, name, &Call::name);
  };
  const auto bytes = [&](const std::string& name) {
    const Call& call = train(name);
    return active_bytes(call.kind, problem.shapes.at(call.role), DType::bf16,
                        plan.calls.at(name), sizes_of(call, problem.sizes));
  };
  const auto seconds = [&](const std::string& name) {
    return CostModel(problem).call_s(train(name), plan.calls.at(name));
  };
  const auto before = bytes("actor_train");
  const auto before_s = seconds("actor_train");
  const auto critic = bytes("critic_train");
  const auto critic_s = seconds("critic_train");
  train("actor_train").rows.ptx = problem.sizes.samples_per_step;
  EXPECT_GT(bytes("actor_train"), before) << "all their tokens have logits";
  EXPECT_GT(seconds("actor_train"), 1.5 * before_s);
  EXPECT_EQ(bytes("critic_train"), critic);
  EXPECT_EQ(seconds("critic_train"), critic_s);
}

TEST(MemoryModel, WaitingPromptsNeedNoCache) {
  const auto shape = shape_7b();
  const Placement place{.devices = ranks(0, 1),
                        .strategy = parse_strategy("t2")};
  const auto needs = [&](std::uint32_t sequences, std::uint64_t cache_bytes) {
    return active_bytes(CallKind::generate, shape, DType::f32, place,
                        {.samples_per_step = 100,
                         .max_sequence_tokens = 512,
                         .max_sequences = sequences,
                         .kv_cache_bytes = cache_bytes,
                         .max_batch_tokens = 1024});
  };
  const auto one
    = sizeof(float) * cache_slot_elements(shape, place.strategy, 0, 512);
  EXPECT_EQ(one, 2 * 512 * 32 * 4096 / 2 * sizeof(float)) << "a device's";
  // the last hidden state, its logits, and the halves of the peers with space
  // for ours
  const std::uint64_t draw = sizeof(float) * (4096 + 32000 + 3 * 32000 / 2);
  const auto all = needs(0, 0);
  EXPECT_EQ(all - needs(10, 0), 90 * (one + draw));
  EXPECT_EQ(needs(0, 10 * one), needs(10, 0));
  EXPECT_EQ(needs(4, 10 * one), needs(4, 0));
  EXPECT_EQ(needs(0, one / 2), needs(1, 0)); // or the run reports that it does
                                             // not fit
  EXPECT_EQ(needs(0, 1000 * one), all);
}

TEST(MicroBatches, PipelinesStayBusyAndBudgetsHold) {
  const BatchSizes sizes{
    .samples_per_step = 512, .mini_batches = 4, .micro_batch_tokens = 4096};
  Placement place{.devices = ranks(0, 3), .strategy = parse_strategy("d4")};
  // 32 samples per rank and mini-batch of 256 tokens: 2 passes of 4096
  EXPECT_EQ(micro_batches_of(CallKind::train, place, sizes, 256).count, 2u);
  place.strategy = parse_strategy("p4");
  EXPECT_EQ(micro_batches_of(CallKind::train, place, sizes, 16).count, 8u);
  EXPECT_EQ(micro_batches_of(CallKind::generate, place, sizes, 256).count, 4u);
  place.micro_batches = 3;
  EXPECT_EQ(micro_batches_of(CallKind::train, place, sizes, 16).count, 3u);
}

} // namespace
} // namespace troupe::plans
