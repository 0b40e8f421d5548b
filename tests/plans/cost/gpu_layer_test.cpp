#include "plans/cost/gpu_layer.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

namespace troupe::plans {
namespace {

using internal::ModelWork;

constexpr double hopper = 9, ampere = 8;
constexpr auto per_expert = launches_per_expert;

/// Returns Mixtral's layer with `count` experts, products in bf16.
ModelWork layer_with(std::int64_t count, DType products = DType::bf16,
                     std::int64_t width = 14336) {
  auto shape = shape_mixtral();
  shape.experts.count = count;
  shape.experts.width = width;
  return {shape, products, stored_types(StorageRule::gpu, products)};
}

double launches_of(const ModelWork& model, GpuPass pass, double tokens,
                   const char* strategy, double capability) {
  return gpu_layer(model, pass, tokens, parse_strategy(strategy), capability)
    .launches;
}

TEST(GpuLayer, OfADenseModelHasTheCounts) {
  const ModelWork dense(shape_7b(), DType::bf16,
                        stored_types(StorageRule::gpu, DType::bf16));
  const auto layer = gpu_layer(dense, GpuPass::train, 4096, {}, hopper);
  EXPECT_EQ(layer.launches, double(gpu_counts.train_layer.launches));
  EXPECT_EQ(layer.traffic, gpu_counts.train_layer.traffic);
  EXPECT_EQ(layer.blocking_copies, gpu_counts.train_layer.blocking_copies);
}

TEST(GpuLayer, GroupsTakeTheLaunchesOfEightExpertsHoweverManyThereAre) {
  for (const std::int64_t count : {8, 128}) {
    const auto model = layer_with(count);
    EXPECT_EQ(launches_of(model, GpuPass::train, 4096, "d1", hopper),
              double(gpu_counts.expert_layer.launches));
    EXPECT_EQ(launches_of(model, GpuPass::score, 4096, "d1", hopper),
              double(gpu_counts.expert_score.launches));
  }
}

// 4 x 32,768 rows of two experts a token are gathered by a device that has all
// of them, half of them each by two that share them.
TEST(GpuLayer, RowsThatAreGatheredInTurnsTakeTheirLaunchesEachTime) {
  const auto model = layer_with(8);
  const auto once = double(gpu_counts.expert_score.launches);
  const auto more = once - double(gpu_counts.score_layer.launches);
  const double tokens = 2 * grouped_rows;
  EXPECT_EQ(launches_of(model, GpuPass::score, tokens, "d1", hopper),
            once + 3 * more);
  EXPECT_EQ(launches_of(model, GpuPass::score, tokens, "t2e2", hopper),
            once + more);
  EXPECT_EQ(launches_of(model, GpuPass::score, tokens, "d2e2", hopper),
            once + 3 * more)
    << "tokens of two ranks";
}

TEST(GpuLayer, FullPassesOfPromptsEndWithinOne) {
  const auto whole = prompt_passes(1000, 100, 1000);
  EXPECT_EQ(whole.count, 1);
  EXPECT_EQ(whole.tokens, 1000);
  EXPECT_EQ(whole.later, 0);
  EXPECT_EQ(whole.continued, 0);
  const auto four = prompt_passes(4000, 100, 1000);
  EXPECT_EQ(four.count, 4);
  EXPECT_EQ(four.tokens, 1000);
  EXPECT_EQ(four.later, 0.75);
  EXPECT_NEAR(four.continued, 0.75 * 0.05, 1e-12) << "half a prompt of ten";
  EXPECT_NEAR(prompt_passes(4000, 1000, 1000).continued, 0.75 * 0.5, 1e-12);
  EXPECT_NEAR(prompt_passes(4000, 4000, 1000).continued, 0.75 * 0.875, 1e-12);
}

TEST(GpuLayer, PromptsTakeTheirOwnCounts) {
  const ModelWork dense(shape_7b(), DType::bf16,
                        stored_types(StorageRule::gpu, DType::bf16));
  const auto& [begun, continued, experts, single] = gpu_prompt_counts;
  const auto once
    = prompt_layer(dense, prompt_passes(1000, 100, 1000), {}, hopper);
  EXPECT_EQ(once.launches, double(begun.launches));
  EXPECT_EQ(once.traffic, begun.traffic);
  PromptPasses all{.count = 10, .tokens = 1000, .later = 1, .continued = 1};
  const auto later = prompt_layer(dense, all, {}, hopper);
  EXPECT_EQ(later.launches, double(continued.launches));
  EXPECT_NEAR(later.traffic, continued.traffic, 1e-12);
  all.later = all.continued = 0;
  const auto launches = [&](double capability) {
    return prompt_layer(layer_with(8), all, {}, capability).launches;
  };
  EXPECT_EQ(launches(hopper), double(experts.launches));
  EXPECT_NEAR(launches(ampere), double(single.launches), 1e-6);
}

TEST(GpuLayer, OtherGpusTypesAndWidthsLaunchEachExpert) {
  const auto single = double(gpu_counts.single_score.launches);
  const auto score
    = [](const ModelWork& model, const char* strategy, double capability) {
        return launches_of(model, GpuPass::score, 4096, strategy, capability);
      };
  EXPECT_NEAR(score(layer_with(8), "d1", ampere), single, 1e-6);
  EXPECT_NEAR(score(layer_with(16), "d1", ampere),
              single + 8 * double(per_expert.score), 1e-6);
  EXPECT_NEAR(score(layer_with(8), "t2e2", ampere),
              single - 4 * double(per_expert.score), 1e-6)
    << "four of eight are a device's";
  EXPECT_NEAR(score(layer_with(8, DType::f32), "d1", hopper), single, 1e-6);
  EXPECT_NEAR(score(layer_with(8, DType::bf16, 1004), "d1", hopper), single,
              1e-6);
  EXPECT_NEAR(score(layer_with(8, DType::bf16, 1032), "t2", hopper), single,
              1e-6)
    << "516 columns are no multiple of 8";
  EXPECT_EQ(score(layer_with(8, DType::bf16, 1032), "t2e2", hopper),
            double(gpu_counts.expert_score.launches));
}

TEST(GpuLayer, ADecodeStepTouchesTheExpertsOfItsTokens) {
  const auto model = layer_with(8);
  const auto launches = [&](double tokens) {
    return launches_of(model, GpuPass::decode, tokens, "d1", ampere);
  };
  const auto all = double(gpu_counts.single_decode.launches);
  EXPECT_NEAR(launches(1000), all, 1e-6);
  EXPECT_NEAR(launches(1), all - 6 * double(per_expert.decode), 1e-6);
}

TEST(GpuLayer, ADeviceWithAllExpertsDispatchesTokensInOneGraphWithoutAWait) {
  const auto model = layer_with(8);
  const auto decode = [&](const char* strategy, double capability) {
    return gpu_layer(model, GpuPass::decode, 64, parse_strategy(strategy),
                     capability);
  };
  EXPECT_EQ(decode("d1", hopper).launches,
            double(gpu_counts.expert_decode.launches));
  EXPECT_EQ(decode("d1", hopper).blocking_copies, 0);
  EXPECT_EQ(decode("t2e2", hopper).blocking_copies, 1);
  EXPECT_EQ(decode("d1", ampere).blocking_copies, 1);
  EXPECT_TRUE(is_captured(model, parse_strategy("d1"), hopper));
  EXPECT_FALSE(is_captured(model, parse_strategy("d1"), ampere));
  EXPECT_FALSE(is_captured(model, parse_strategy("t2e2"), hopper));
}

} // namespace
} // namespace troupe::plans
