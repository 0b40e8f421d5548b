// The layout of weights without masters, and what plans count of it.
#include "config/model/family.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "plans/memory/memory_model.hpp"

#include "tests/support/models/io_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

ParameterShape matrix(const char* name, std::int64_t rows, std::int64_t cols) {
  ParameterShape shape;
  shape.name = name;
  shape.rows = rows;
  shape.cols = cols;
  return shape;
}

ParameterShape vector(const char* name, std::int64_t size) {
  ParameterShape shape = matrix(name, size, 1);
  shape.vector = true;
  return shape;
}

TEST(FrozenLayout, WhatProductsDoNotReadFollowsInFp32) {
  const std::vector<ParameterShape> shapes{
    vector("model.layers.0.input_layernorm.weight", 20),
    matrix("model.layers.0.mlp.up_proj.weight", 8, 8),
    vector("model.norm.weight", 20)};
  const std::int64_t masters = 32 + 64 + 32;
  const FrozenLayout layout = frozen_layout(shapes, masters);
  EXPECT_THAT(layout.fp32_offsets,
              ::testing::ElementsAre(masters / 2, FrozenLayout::in_bf16,
                                     masters / 2 + 32));
  EXPECT_EQ(layout.size, masters / 2 + 64);
}

TEST(FrozenLayout, AnOddRestOfMastersKeepsFp32Aligned) {
  const FrozenLayout layout
    = frozen_layout({vector("model.norm.weight", 16)}, 16);
  EXPECT_THAT(layout.fp32_offsets, ::testing::ElementsAre(16));
  EXPECT_EQ(layout.size, 32);
}

/// Checks that the fullest device of each stage has what plans count.
void expect_counted(const ModelShape& shape, const char* text) {
  const auto strategy = parse_strategy(text);
  const auto counted = plans::stage_bytes(
    shape, strategy,
    plans::weight_planes(plans::StorageRule::gpu, DType::bf16,
                         plans::RoleWeights::frozen));
  std::vector<std::uint64_t> most(strategy.pp, 0);
  for (std::uint32_t i = 0; i < strategy.num_devices(); ++i) {
    const auto where = coordinate_of(strategy, i);
    const Parameters parameters(
      LocalModel(shape, strategy, where), /*trainable=*/false, nullptr,
      net::PageSharing::none, DType::bf16, Masters::none);
    most[where.pp] = std::max(most[where.pp], parameters.device_bytes());
  }
  for (std::uint32_t stage = 0; stage < strategy.pp; ++stage)
    EXPECT_NEAR(static_cast<double>(counted[stage].weights)
                  / static_cast<double>(most[stage]),
                1, 0.01)
      << shape.family << ' ' << text << ", stage " << stage;
}

TEST(FrozenLayout, PlansCountItsBytes) {
  for (const char* family : {"llama", "gpt2", "olmo2", "qwen3_moe"}) {
    ModelShape shape = find_family(family)->traits;
    shape.family = family;
    shape.vocab_size = 512;
    shape.hidden_size = 128;
    shape.num_layers = 3;
    shape.num_heads = shape.num_kv_heads = 4;
    shape.head_dim = 32;
    shape.intermediate_size = 256;
    shape.max_positions = 64;
    if (family == std::string_view("qwen3_moe"))
      shape.experts = {.count = 4, .per_token = 2, .width = 64};
    for (const char* strategy : {"d1", "t2", "p3", "p2t2"})
      expect_counted(shape, strategy);
    shape.scalar_head = true;
    expect_counted(shape, "p2");
  }
}

} // namespace
} // namespace troupe::models
