// Predictions of our engine on GPUs: what each count adds to the seconds of a
// call, by their gain when its price rises.
#include "plans/cost/cost_model.hpp"
#include "plans/cost/gpu_layer.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/call_seconds.hpp"

namespace troupe::plans {
namespace {

constexpr double gpu_tokens = 64; // of each response
constexpr double gpu_responses = 32;

/// Returns 32 responses of 64 tokens by Llama 7B.
PlanProblem on_gpus(const ModelShape& shape = shape_7b()) {
  auto problem = make_problem(shape, 1, 8, "h100x8");
  problem.sizes.engine = {.packs_weights = true, .storage = StorageRule::gpu};
  problem.sizes.samples_per_step = static_cast<std::uint32_t>(gpu_responses);
  problem.sizes.mini_batches = 1;
  problem.sizes.recompute_activations = false;
  problem.lengths = Lengths(128, gpu_tokens, gpu_tokens);
  return problem;
}

/// Returns the same with experts on GPUs that multiply one after the other.
PlanProblem on_ampere() {
  auto problem = on_gpus(shape_mixtral());
  problem.hardware.compute_capability = 8;
  return problem;
}

/// Returns how many times a call pays a number of the hardware file.
double times_paid(const PlanProblem& problem, const char* call,
                  const char* strategy, double Hardware::*price,
                  double more = 1) {
  auto dearer = problem;
  dearer.hardware.*price += more;
  return (seconds_of_call(dearer, call, strategy)
          - seconds_of_call(problem, call, strategy))
         / more;
}

constexpr auto gpu_steps = gpu_tokens - 1; // the prompt's pass draws the first
const auto decode_launches = double(gpu_counts.decode_layer.launches);
const auto rest_launches = double(gpu_counts.decode_rest.launches);

TEST(GpuCost, ADecodedTokenPaysTheGapsOfItsKernels) {
  const auto gaps = [](const PlanProblem& problem, const char* strategy) {
    return times_paid(problem, "actor_gen", strategy, &Hardware::graph_gap_s);
  };
  EXPECT_NEAR(gaps(on_gpus(), "d1"),
              gpu_steps * (32 * decode_launches + rest_launches), 1);
  EXPECT_NEAR(gaps(on_gpus(), "t2"),
              gpu_steps * (32 * (decode_launches + 2) + rest_launches), 1)
    << "and of two sums";
  auto single = on_ampere();
  single.hardware.launch_s = 1;
  EXPECT_NEAR(times_paid(single, "actor_gen", "d1", &Hardware::graph_gap_s,
                         /*more=*/0.5),
              0, 1e-6)
    << "launches one by one take longer";
}

TEST(GpuCost, PeersMeetOnceBeforeAGraphAndInEachLayerOfPrompts) {
  EXPECT_NEAR(
    times_paid(on_gpus(), "actor_gen", "t2", &Hardware::launch_tp_extra_s),
    gpu_steps + 32, 0.5);
}

TEST(GpuCost, ExpertsPayLaunchesOneByOne) {
  auto problem = on_ampere();
  problem.hardware.launch_s = 1; // longer than any kernel
  const auto launches = [&] {
    return times_paid(problem, "actor_gen", "d1", &Hardware::launch_s);
  };
  // a layer of each token, and the prompts' pass
  const auto prompts = 32 * double(gpu_prompt_counts.single_experts.launches);
  EXPECT_NEAR(
    launches(),
    prompts
      + gpu_steps
          * (32 * double(gpu_counts.single_decode.launches) + rest_launches),
    10)
    << "32 tokens go to 7.999 experts";
  problem.shapes = on_gpus().shapes;
  EXPECT_NEAR(launches(), 32 * double(gpu_prompt_counts.new_layer.launches), 1)
    << "graphs are launched at once";
}

// 4,096 tokens of prompts of 128 each.
TEST(GpuCost, EachPassOfPromptsPaysItsLaunchesAndReadsTheWeights) {
  auto problem = on_gpus();
  problem.hardware.launch_s = 1;
  const auto launches = [&](std::int64_t most) {
    problem.sizes.max_batch_tokens = most;
    return times_paid(problem, "actor_gen", "d1", &Hardware::launch_s);
  };
  const auto& [begun, continued, experts, single] = gpu_prompt_counts;
  EXPECT_NEAR(launches(4096), 32 * double(begun.launches), 1);
  EXPECT_NEAR(launches(1024),
              32 * double(begun.launches + 3 * continued.launches), 1);
  problem.hardware.launch_s = 1e-30;
  problem.hardware.gemm_flops = problem.hardware.attn_flops = 1e30;
  const auto seconds = [&](std::int64_t most) {
    problem.sizes.max_batch_tokens = most;
    return seconds_of_call(problem, "actor_gen", "d1");
  };
  const auto once
    = begun.traffic * 2 * 6'476'267'520 / problem.hardware.mem_Bps;
  EXPECT_GT(seconds(1024), seconds(4096) + 3 * once);
}

TEST(GpuCost, TheHostsWorkForATokenIsHiddenWhereItRunsAhead) {
  const auto host = [](const PlanProblem& problem, const char* strategy) {
    return times_paid(problem, "actor_gen", strategy, &Hardware::stage_token_s,
                      1e-6);
  };
  auto problem = on_gpus();
  EXPECT_NEAR(host(problem, "d1"), 0, 1e-6);
  EXPECT_NEAR(host(problem, "t2"), 0, 1e-6);
  EXPECT_NEAR(host(problem, "p2"), 2 * gpu_steps, 0.1) << "two stages";
  EXPECT_NEAR(host(on_ampere(), "d1"), gpu_steps, 0.1)
    << "waits for the choice of experts";
  problem.hardware.stage_token_s = 1;
  EXPECT_NEAR(host(problem, "d1"), gpu_steps, 0.1) << "longer than the device";
  problem.hardware.stage_token_s = 0;
  problem.sizes.engine.draws = DrawPlace::host;
  EXPECT_NEAR(host(problem, "d1"), gpu_steps, 0.1);
}

TEST(GpuCost, AMicroBatchPaysItsLaunchesAndCopies) {
  auto problem = on_gpus();
  problem.hardware.launch_s = 1;
  const auto train = [&](double Hardware::*price) {
    return times_paid(problem, "actor_train", "d1", price);
  };
  EXPECT_NEAR(train(&Hardware::launch_s),
              32.0 * double(gpu_counts.train_layer.launches)
                + double(gpu_counts.train_rest.launches),
              1e-3);
  EXPECT_NEAR(train(&Hardware::copy_s),
              double(gpu_counts.train_rest.blocking_copies), 1e-3);
  EXPECT_NEAR(times_paid(problem, "ref_inf", "d1", &Hardware::launch_s),
              32.0 * double(gpu_counts.score_layer.launches)
                + double(gpu_counts.score_rest.launches),
              1e-3);
}

/// 6,476,267,520 numbers of weights in layers; 164,352 numbers of a token in
/// fused kernels of one, and 131,072,000 of the head.
TEST(GpuCost, ADecodedTokenMovesTheCountedBytes) {
  auto problem = on_gpus();
  auto& hw = problem.hardware;
  hw.gemm_flops = hw.attn_flops = 1e30;
  hw.cache_Bps = 1e30;
  hw.graph_gap_s = 1e-30;
  hw.launch_s = 1e-30;
  hw.copy_s = hw.stage_token_s = hw.call_s = hw.call_device_s = 0;
  const auto layers
    = 2 * (6'476'267'520 + gpu_responses * 32 * (164'352.0 + 2 * 4096));
  const auto head
    = 2 * (131'072'000 + gpu_responses * 6 * 4096) + 8 * gpu_responses * 32'000;
  const auto drawn = 24 * gpu_responses * 32'000;
  const auto of_tokens = (gpu_tokens - 1)
                         * (gpu_counts.decode_layer.traffic * layers
                            + gpu_counts.decode_rest.traffic * head + drawn);
  const auto prompt_tokens = gpu_responses * 128;
  const auto prompts
    = gpu_prompt_counts.new_layer.traffic
      * (layers - 2 * gpu_responses * 32 * (164'352.0 + 2 * 4096)
         + 2 * prompt_tokens * 32 * (164'352 + 2 * 4096));
  EXPECT_NEAR(seconds_of_call(problem, "actor_gen", "d1") * hw.mem_Bps,
              of_tokens + prompts, 1e-6 * (of_tokens + prompts));
}

/// A cache of 8 responses of 128 and 64 tokens has 1,536 in all: 16 of 96.
TEST(GpuCost, ShortResponsesShareTheCacheOfFewerLongOnes) {
  auto problem = on_gpus();
  const auto seconds = [&](std::uint32_t whole, const Lengths& lengths,
                           std::uint32_t at_once = 0) {
    problem.lengths = lengths;
    problem.sizes.max_sequences = at_once;
    return CostModel(problem).call_s(
      problem.workflow.call("actor_gen"),
      {.devices = ranks(0, 0), .strategy = {}, .responses = whole});
  };
  problem.sizes.max_sequence_tokens = 128 + 64;
  problem.sizes.max_new_tokens = 64;
  const Lengths longest(128, 64, 64), half(64, 32, 32), short_one(1, 15, 15);
  EXPECT_NEAR(seconds(8, half), seconds(16, half, 16), 1e-9);
  EXPECT_NEAR(seconds(8, longest), seconds(8, longest, 8), 1e-9);
  EXPECT_GT(seconds(8, longest), 1.2 * seconds(16, longest));
  EXPECT_NEAR(seconds(4, short_one), seconds(16, short_one, 16), 1e-9)
    << "four times as many at most";
  EXPECT_GT(seconds(4, short_one), 1.2 * seconds(8, short_one));
  problem.sizes.engine.storage = StorageRule::published;
  EXPECT_NEAR(seconds(8, half), seconds(8, half, 8), 1e-9);
}

TEST(GpuCost, DrawingOnTheHostCopiesAllLogitsToIt) {
  auto problem = on_gpus();
  problem.hardware.stage_token_s = problem.hardware.copy_s = 0;
  const auto on_device = seconds_of_call(problem, "actor_gen", "d1");
  problem.sizes.engine.draws = DrawPlace::host;
  const auto logits = (gpu_tokens - 1) * gpu_responses * 32'000;
  EXPECT_NEAR(
    seconds_of_call(problem, "actor_gen", "d1") - on_device,
    logits * (4 / problem.hardware.host_Bps - 24 / problem.hardware.mem_Bps),
    1e-9);
}

TEST(GpuCost, ShardedOptimizersPayTheGatherOfWhatTheyChanged) {
  const auto problem = on_gpus();
  auto slow = problem;
  slow.hardware.gather_Bps /= 10;
  const auto more_s = [&](const char* strategy) {
    return seconds_of_call(slow, "actor_train", strategy)
           - seconds_of_call(problem, "actor_train", strategy);
  };
  EXPECT_EQ(more_s("d8"), 0);
  const auto bytes = 4.0 * 7 / 8 * double(num_parameters(shape_7b()));
  EXPECT_NEAR(more_s("d8z1"),
              bytes / slow.hardware.gather_Bps
                - bytes / problem.hardware.gather_Bps,
              1e-3);
}

TEST(GpuCost, StagesAndTensorPeersSendActivationsAsTheyAreStored) {
  auto problem = on_gpus();
  problem.hardware.intra_Bps = 1e6; // all that counts
  for (const char* strategy : {"p2", "t2"}) {
    const auto in_bf16 = seconds_of_call(problem, "ref_inf", strategy);
    auto in_fp32 = problem;
    in_fp32.dtypes["ref"] = DType::f32;
    EXPECT_NEAR(seconds_of_call(in_fp32, "ref_inf", strategy) / in_bf16, 2,
                0.02)
      << strategy;
  }
}

/// Two experts a token, 128 of 256 columns each where tp cuts them; half of the
/// rate at 64 columns.
TEST(GpuCost, CutExpertsMultiplySlowerThanWholeOnes) {
  auto shape = shape_mixtral();
  shape.experts.width = 256;
  auto problem = on_gpus(shape);
  problem.hardware.gemm_flops = 1e12; // nothing else takes as long
  problem.hardware.mem_Bps = 1e30;
  problem.hardware.gemm_width_half = 64;
  const auto at_full_rate = 2 * gpu_responses * (128 + gpu_tokens) * 32
                            * (2 * 3 * 4096.0 * 256) / 2 / 1e12;
  EXPECT_NEAR(seconds_of_call(problem, "ref_inf", "t2")
                - seconds_of_call(problem, "ref_inf", "t2e2"),
              at_full_rate * (192.0 / 128 - 320.0 / 256), 1e-3 * at_full_rate);
}

/// fp32 rows of 4,096 numbers to two experts a token, off a device and on it,
/// there and back, in 32 layers.
TEST(GpuCost, RowsForExpertsOfOtherRanksGoThroughTheHost) {
  const auto problem = on_gpus(shape_mixtral());
  auto slow = problem;
  slow.hardware.host_Bps = 1;
  const auto more_s = [&](const char* strategy) {
    return seconds_of_call(slow, "ref_inf", strategy)
           - seconds_of_call(problem, "ref_inf", strategy);
  };
  EXPECT_EQ(more_s("t2e2"), 0) << "peers of a token have it";
  const auto rows = 2 * (gpu_responses / 2) * (128 + gpu_tokens);
  EXPECT_NEAR(more_s("d2e2"), 4 * rows * 4 * 4096 * 32, 1e3);
}

TEST(GpuCost, OfServersIsNotThatOfOurLaunches) {
  auto problem = on_gpus();
  problem.sizes.engine.serves = true;
  EXPECT_EQ(times_paid(problem, "actor_gen", "t2", &Hardware::graph_gap_s), 0);
  EXPECT_GT(times_paid(problem, "actor_gen", "t2", &Hardware::launch_graph_s),
            1000);
}

TEST(GpuCost, WithoutPricesOfKernelsThoseOfALayerCount) {
  auto problem = on_gpus();
  problem.hardware.graph_gap_s = problem.hardware.launch_s = 0;
  EXPECT_NEAR(times_paid(problem, "actor_gen", "d1", &Hardware::launch_graph_s),
              gpu_steps * (32 + rest_launches / decode_launches), 1e-2);
  problem.hardware.launch_layer_s = 1;
  EXPECT_NEAR(times_paid(problem, "ref_inf", "d1", &Hardware::launch_layer_s),
              32
                + double(gpu_counts.score_rest.launches)
                    / double(gpu_counts.score_layer.launches),
              1e-2);
}

/// Returns by how much gathers of fp32 take longer than those of bf16.
double gathers_of_fp32(PlanProblem problem, const char* call,
                       const char* strategy) {
  problem.hardware.gather_Bps = 1; // nothing else counts
  const auto of_bf16 = seconds_of_call(problem, call, strategy);
  for (auto& [role, dtype] : problem.dtypes)
    dtype = DType::f32;
  return seconds_of_call(problem, call, strategy) / of_bf16;
}

TEST(GpuCost, WeightsAreGatheredForKernelsAsTheseReadThem) {
  auto problem = on_gpus();
  const auto expect = [&](const char* call, const char* strategy, double more) {
    EXPECT_NEAR(gathers_of_fp32(problem, call, strategy), more, 1e-3)
      << call << " under " << strategy;
  };
  expect("ref_inf", "d8z3", 4.0 / 2);
  expect("actor_gen", "d8z3", 4.0 / 2);
  expect("actor_train", "d8z3", (4.0 + 4 + 4) / (2 + 2 + 4));
  expect("actor_train", "d8z1", 1); // masters, at the end of the call
  problem.sizes.mini_batches = 4;
  expect("actor_train", "d8z1", (4.0 * 4) / (3 * 2 + 4));
}

TEST(GpuCost, BetweenNodesAReplicaThatOnlyComputesIsSentBf16) {
  auto problem = on_gpus();
  problem.cluster.nodes = 2;
  const Placement home{.devices = ranks(0, 7),
                       .strategy = parse_strategy("t8")};
  const Placement other{.devices = ranks(8, 15),
                        .strategy = parse_strategy("t8")};
  const auto sent_s = [&] {
    return CostModel(problem).move_s("actor", home, other)
           - problem.hardware.move_s;
  };
  const double bf16_s = sent_s();
  EXPECT_GT(bf16_s, 0);
  problem.sizes.engine.serves = true;
  EXPECT_DOUBLE_EQ(sent_s(), 2 * bf16_s) << "servers get fp32";
  problem.sizes.engine.serves = false;
  problem.dtypes["actor"] = DType::f32;
  EXPECT_DOUBLE_EQ(sent_s(), 2 * bf16_s);
}

} // namespace
} // namespace troupe::plans
