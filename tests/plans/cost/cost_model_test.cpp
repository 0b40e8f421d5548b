#include "plans/cost/cost_model.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

double seconds(const PlanProblem& problem, const char* call,
               const char* strategy, std::uint32_t first = 0) {
  const CostModel costs(problem);
  const auto parsed = parse_strategy(strategy);
  return costs.call_s(
    problem.workflow.call(call),
    {.devices = ranks(first, first + parsed.num_devices() - 1),
     .strategy = parsed});
}

TEST(CostModel, LargeForwardsRunNearTheMatrixRate) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.call_s = 0;
  const auto tokens = 512.0 * 256;
  const auto least = forward_flops(shape_7b(), tokens, tokens * 256)
                     / problem.hardware.gemm_flops;
  const auto one = seconds(problem, "ref_inf", "d1");
  EXPECT_GT(one, least);
  EXPECT_LT(one, 1.4 * least);
}

TEST(CostModel, DataParallelismDividesInferenceAndPipelinesHaveBubbles) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.call_s = 0;
  const auto one = seconds(problem, "ref_inf", "d1");
  EXPECT_NEAR(seconds(problem, "ref_inf", "d8"), one / 8, 0.02 * one);
  const auto piped = seconds(problem, "ref_inf", "p8");
  EXPECT_GT(piped, one / 8);
  const CostModel ideal(problem, {.bubbles = false});
  EXPECT_LT(
    ideal.call_s(problem.workflow.call("ref_inf"),
                 {.devices = ranks(0, 7), .strategy = parse_strategy("p8")}),
    piped);
}

TEST(CostModel, SmallDecodeBatchesAreBoundByLaunchesOrMemory) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.sizes.samples_per_step = 8;
  const auto few = seconds(problem, "actor_gen", "d8");
  problem.sizes.samples_per_step = 64;
  EXPECT_LT(seconds(problem, "actor_gen", "d8"), 1.2 * few);
  // graphs remove the launches
  auto graphs = problem;
  graphs.hardware.launch_graph_s = 1e-6;
  EXPECT_LT(seconds(graphs, "actor_gen", "d8"),
            seconds(problem, "actor_gen", "d8"));
}

TEST(CostModel, ASecondModelOfAConversationAddsHalfItsGeneration) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.call_s = 0;
  problem.hardware.call_device_s = 0;
  const auto alone = seconds(problem, "actor_gen", "d8");
  problem.workflow = make_ppo_with_opponent();
  problem.shapes["opponent"] = shape_7b();
  problem.dtypes["opponent"] = DType::bf16;
  EXPECT_NEAR(seconds(problem, "actor_gen", "d8"), 1.5 * alone, 1e-9 * alone);
}

TEST(CostModel, DecodingOnAnH100IsNearItsRoofline) {
  auto problem = make_problem(shape_7b(), 1, 8, "h100x8");
  constexpr double responses = 256, prompt = 512, tokens = 1024;
  problem.sizes.samples_per_step = 2 * static_cast<std::uint32_t>(responses);
  problem.lengths = Lengths(prompt, tokens, tokens);
  const auto shape = shape_7b();
  const auto weights = double(weight_bytes(shape, DType::bf16)) / 4;
  const auto cache
    = responses * (prompt + tokens / 2) * 2 * 2
      * double(shape.num_layers * shape.num_kv_heads * shape.head_dim) / 4;
  constexpr double data_sheet_Bps = 3.35e12;
  const auto least = tokens * (weights + cache) / data_sheet_Bps;
  const auto predicted = seconds(problem, "actor_gen", "d2t4");
  EXPECT_GT(predicted, least);
  EXPECT_LT(predicted, 1.8 * least) << "with what lies between kernels, sums "
                                       "over four devices and sampling";
}

TEST(CostModel, DecodingIsMemoryBoundUntilProductsTakeLonger) {
  auto problem = make_problem(shape_7b(), 1, 8, "h100x8");
  problem.lengths = Lengths(1, 64, 64);
  auto slow_memory = problem, slow_products = problem;
  slow_memory.hardware.mem_Bps /= 2;
  slow_products.hardware.gemm_flops /= 2;
  const auto times = [&](std::uint32_t samples, PlanProblem& slow) {
    slow.sizes.samples_per_step = problem.sizes.samples_per_step = samples;
    return seconds(slow, "actor_gen", "d1")
           / seconds(problem, "actor_gen", "d1");
  };
  EXPECT_GT(times(8, slow_memory), 1.6);
  EXPECT_LT(times(8, slow_products), 1.01);
  EXPECT_GT(times(2048, slow_products), 1.6);
  EXPECT_LT(times(2048, slow_memory), 1.2);
}

TEST(CostModel, GroupedHeadsMakeTheCacheCheaper) {
  auto problem = make_problem(shape_34b(), 1, 8, "h100x8");
  problem.sizes.samples_per_step = 2048;
  problem.lengths = Lengths(128, 896, 896);
  const auto grouped = seconds(problem, "actor_gen", "t8");
  problem.shapes["actor"].num_kv_heads = 64;
  EXPECT_GT(seconds(problem, "actor_gen", "t8"), 1.1 * grouped);
}

TEST(CostModel, RaggedResponsesCostLessThanTheirMaximum) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.lengths = Lengths(128, 1024, 1024);
  const auto fixed = seconds(problem, "actor_gen", "d8");
  problem.lengths = Lengths(128, 200, 1024);
  const auto ragged = seconds(problem, "actor_gen", "d8");
  problem.lengths = Lengths(128, 200, 200);
  EXPECT_LT(ragged, fixed);
  EXPECT_GT(ragged, seconds(problem, "actor_gen", "d8"))
    << "the longest answer of a device ends the call";
}

TEST(CostModel, LaterChunksDoNotWaitForTheLongestResponse) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.call_s = 0; // later ones are requested with the first
  auto placement = on(0, 7);
  placement.chunks = 4;
  const auto chunk_s = [&](const char* name, double mean) {
    problem.lengths = Lengths(128, mean, 1024);
    const CostModel costs(problem);
    const auto& call = problem.workflow.call(name);
    return std::pair{costs.call_s(call, placement),
                     costs.later_chunk_s(call, placement)};
  };
  const auto [first, later] = chunk_s("actor_gen", 200);
  EXPECT_LT(later, 0.6 * first);
  EXPECT_GT(later, 0.1 * first);
  const auto [fixed_first, fixed_later] = chunk_s("actor_gen", 1024);
  EXPECT_NEAR(fixed_later, fixed_first, 0.01 * fixed_first);
  const auto [scored_first, scored_later] = chunk_s("ref_inf", 200);
  EXPECT_EQ(scored_later, scored_first);
}

TEST(CostModel, ResponsesBeyondTheSlotsTakeFreedSlots) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.call_s = 0;
  problem.sizes.samples_per_step = 256;
  const auto all_s = [&](std::uint32_t samples, std::uint32_t places) {
    problem.sizes.samples_per_step = samples;
    problem.sizes.max_sequences = places;
    return seconds(problem, "actor_gen", "d8");
  };
  const auto at_once = all_s(256, 0);
  EXPECT_EQ(all_s(256, 32), at_once) << "there are places for all";
  EXPECT_NEAR(all_s(256, 16), 2 * all_s(128, 0), 1e-9 * at_once);
  problem.lengths = Lengths(128, 200, 1024);
  EXPECT_LT(all_s(256, 16), 1.7 * all_s(128, 0))
    << "only the last ones wait for the longest";
}

/// A dense model whose MLP is `times` as wide.
ModelShape shape_of_width(std::int64_t times) {
  auto shape = shape_mixtral();
  shape.experts = {};
  shape.intermediate_size *= times;
  return shape;
}

TEST(CostModel, ExpertsCostTheFlopsOfTheChosenOnes) {
  const auto inference_s = [](const ModelShape& shape) {
    auto problem = make_problem(shape, 1, 8);
    problem.hardware.call_s = problem.hardware.launch_layer_s = 0;
    return seconds(problem, "ref_inf", "d8");
  };
  const auto chosen = inference_s(shape_of_width(2));
  EXPECT_GT(inference_s(shape_mixtral()), chosen) << "router, gathers";
  EXPECT_LT(inference_s(shape_mixtral()), 1.1 * chosen);
}

TEST(CostModel, DecodingReadsTheExpertsOfItsTokens) {
  const auto decode_s = [](const ModelShape& shape, std::uint32_t responses) {
    auto problem = make_problem(shape, 1, 8, "h100x8");
    problem.hardware.call_s = problem.hardware.stage_token_s = 0;
    problem.hardware.launch_graph_s = 1e-9;
    problem.sizes.samples_per_step = responses;
    problem.lengths = Lengths(1, 1024, 1024);
    return seconds(problem, "actor_gen", "d1");
  };
  EXPECT_NEAR(decode_s(shape_mixtral(), 1), decode_s(shape_of_width(2), 1),
              0.02 * decode_s(shape_of_width(2), 1));
  EXPECT_NEAR(decode_s(shape_mixtral(), 32), decode_s(shape_of_width(8), 32),
              0.02 * decode_s(shape_of_width(8), 32));
}

TEST(CostModel, ActiveExpertsLaunchOneByOne) {
  auto problem = make_problem(shape_mixtral(), 1, 8);
  problem.hardware.launch_layer_s = 1; // bound by launches
  auto dense = problem;
  dense.shapes["ref"] = shape_of_width(2);
  EXPECT_NEAR(seconds(problem, "ref_inf", "d8"),
              (1 + 0.25 * 7) * seconds(dense, "ref_inf", "d8"), 1);
}

TEST(CostModel, ADeviceLaunchesTheExpertsThatAreDealtToIt) {
  auto problem = make_problem(shape_mixtral(), 1, 8);
  problem.hardware.launch_layer_s = 1; // bound by launches
  auto dense = problem;
  dense.shapes["ref"] = shape_of_width(2);
  EXPECT_NEAR(seconds(problem, "ref_inf", "d2t4e4"),
              (1 + 0.25) * seconds(dense, "ref_inf", "d2t4"), 1);
  EXPECT_NEAR(seconds(problem, "ref_inf", "d8e8"),
              seconds(dense, "ref_inf", "d8"), 1);
}

TEST(CostModel, MovesAndMemoryCountAllExperts) {
  const auto problem = make_problem(shape_mixtral(), 1, 8);
  const CostModel costs(problem);
  const auto moved = costs.move_bytes_of("actor", on(0, 0), on(1, 1));
  EXPECT_NEAR(moved.intra, double(weight_bytes(shape_mixtral(), DType::bf16)),
              1e-6 * moved.intra);
  EXPECT_GT(moved.intra, 2 * 46e9) << "47 B parameters";
  EXPECT_EQ(stage_bytes(shape_mixtral(), {}).front().weights,
            weight_bytes(shape_mixtral(), DType::f32));
}

TEST(CostModel, SlowLinksSlowDownTheirUsers) {
  auto problem = make_problem(shape_7b(), 2, 8);
  auto slow = problem;
  slow.hardware.inter_Bps /= 10;
  EXPECT_EQ(seconds(problem, "actor_train", "d8"),
            seconds(slow, "actor_train", "d8"));
  EXPECT_LT(seconds(problem, "actor_train", "d16"),
            seconds(slow, "actor_train", "d16"));
  slow = problem;
  slow.hardware.zero_Bps /= 10;
  EXPECT_LT(seconds(problem, "actor_train", "d16z3"),
            seconds(slow, "actor_train", "d16z3"));
}

TEST(CostModel, MeasuredTimesTakePrecedenceOverFormulas) {
  auto problem = make_problem(shape_7b(), 1, 8);
  const auto formula = seconds(problem, "ref_inf", "d8");
  const auto parameters = num_parameters(problem.shapes.at("ref"));
  problem.profile
    = ProfileTable({{ProfileOp::forward, parameters, 1, 1e3, 1},
                    {ProfileOp::forward, parameters, 1, 1e6, 99}});
  EXPECT_GT(seconds(problem, "ref_inf", "d8"), formula);
  EXPECT_EQ(seconds(problem, "ref_inf", "t8"),
            seconds(make_problem(shape_7b(), 1, 8), "ref_inf", "t8"))
    << "tensor degrees that were not measured";
}

TEST(CostModel, TheOptimizerStepIsAddedToMeasuredPasses) {
  auto problem = make_problem(shape_7b(), 1, 8);
  const auto parameters = num_parameters(problem.shapes.at("actor"));
  problem.profile = ProfileTable({{ProfileOp::train, parameters, 1, 1e3, 1},
                                  {ProfileOp::train, parameters, 1, 1e6, 99}});
  problem.hardware.optimizer_Bps = 1e10;
  const auto slow = seconds(problem, "actor_train", "d8");
  const auto slow_sharded = seconds(problem, "actor_train", "d8z1");
  problem.hardware.optimizer_Bps = 1e12;
  const auto step_s
    = optimizer_bytes_a_parameter * static_cast<double>(parameters) / 1e10;
  const auto steps = problem.sizes.mini_batches;
  EXPECT_NEAR(slow - seconds(problem, "actor_train", "d8"),
              steps * 0.99 * step_s, 1e-6 * slow);
  EXPECT_NEAR(slow - slow_sharded, steps * 7.0 / 8 * step_s, 1e-6 * slow);
}

TEST(CostModel, DevicesThatShareCoresAreFasterWhileOthersAreIdle) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.call_s = 0;
  const auto calls = {"actor_gen", "ref_inf", "actor_train"};
  std::map<std::string, std::vector<double>> before;
  const auto strategies = {"d8", "t4", "t2", "d1"};
  for (const char* call : calls)
    for (const char* strategy : strategies)
      before[call].push_back(seconds(problem, call, strategy));
  problem.hardware.crowded_share = 0.25; // two cores
  for (const char* call : calls) {
    std::vector<double> times;
    for (const char* strategy : strategies)
      times.push_back(seconds(problem, call, strategy)
                      / before[call][times.size()]);
    EXPECT_THAT(times,
                ::testing::Pointwise(::testing::DoubleNear(1e-9),
                                     std::vector<double>{1, 0.5, 0.25, 0.25}))
      << call;
  }
}

TEST(CostModel, OnlyGathersInsideANodeHaveTheRateOfItsLinks) {
  auto problem = make_problem(shape_7b(), 2, 8);
  auto fast = problem;
  fast.hardware.gather_Bps = 4 * problem.hardware.zero_Bps;
  EXPECT_LT(seconds(fast, "actor_train", "d8z3"),
            seconds(problem, "actor_train", "d8z3"));
  EXPECT_DOUBLE_EQ(seconds(fast, "actor_train", "d16z3"),
                   seconds(problem, "actor_train", "d16z3"));
}

TEST(CostModel, GathersDuringComputeHaveTheirOwnRate) {
  auto problem = make_problem(shape_7b(), 1, 8);
  const auto alone = seconds(problem, "actor_train", "d8z3");
  auto slow = problem;
  slow.hardware.zero_Bps /= 4;
  problem.hardware.gather_Bps = problem.hardware.zero_Bps / 4;
  EXPECT_DOUBLE_EQ(seconds(problem, "actor_train", "d8z3"),
                   seconds(slow, "actor_train", "d8z3"));
  EXPECT_GT(seconds(slow, "actor_train", "d8z3"), 1.01 * alone);
  problem.hardware.sum_Bps = problem.hardware.intra_Bps / 4;
  EXPECT_DOUBLE_EQ(seconds(problem, "actor_train", "d8z3"),
                   seconds(slow, "actor_train", "d8z3"));
}

TEST(CostModel, TheLastStageOfAMeasuredPassHasTheHead) {
  auto problem = make_problem(shape_tiny(), 1, 2);
  problem.hardware.call_s = 0;
  const auto ref = problem.shapes.at("ref");
  problem.profile
    = ProfileTable({{ProfileOp::forward, num_parameters(ref), 1, 1e3, 1},
                    {ProfileOp::forward, num_parameters(ref), 1, 1e6, 1000}});
  // 32,000 words make the head of a tiny model most of its work
  const auto alone = seconds(problem, "ref_inf", "d1");
  EXPECT_GT(seconds(problem, "ref_inf", "p2"), 0.9 * alone);
  EXPECT_NEAR(seconds(problem, "ref_inf", "d2"), alone / 2, 0.01 * alone);
}

TEST(CostModel, ReshardingOnTheSameDevicesIsATask) {
  const auto problem = make_problem(shape_7b(), 1, 8);
  const CostModel costs(problem);
  const auto placement = [](const char* strategy) {
    return Placement{.devices = ranks(0, 7),
                     .strategy = parse_strategy(strategy)};
  };
  EXPECT_EQ(costs.move_s("actor", placement("d8z1"), placement("d8")),
            problem.hardware.move_s);
  EXPECT_EQ(costs.move_s("actor", placement("d8"), placement("d8")), 0);
}

TEST(CostModel, SpansFollowTheNodes) {
  const Cluster cluster{.nodes = 2, .devices_per_node = 8};
  const auto span = [&](std::uint32_t first, const char* text) {
    const auto strategy = parse_strategy(text);
    return span_of({.devices = ranks(first, first + strategy.num_devices() - 1),
                    .strategy = strategy},
                   cluster);
  };
  EXPECT_FALSE(span(0, "d2t4").pipeline);
  EXPECT_TRUE(span(6, "t4").tensor);
  EXPECT_TRUE(span(0, "d16").data);
  EXPECT_FALSE(span(0, "p2t8").data);
  EXPECT_TRUE(span(0, "p2t8").pipeline);
}

} // namespace
} // namespace troupe::plans
