// Counts by hand of a model with 4 layers of 64, 4 heads of 16 of which 2 have
// keys, an MLP of 128 and 512 tokens. That engines take as much is
// tests/models/device_memory_test.cpp.
#include "plans/call_memory.hpp"
#include "plans/pass_memory.hpp"

#include <gtest/gtest.h>

namespace troupe::plans {
namespace {

ModelShape hand_shape() {
  ModelShape shape;
  shape.vocab_size = 512;
  shape.hidden_size = 64;
  shape.num_layers = 4;
  shape.num_heads = 4;
  shape.num_kv_heads = 2;
  shape.head_dim = 16;
  shape.intermediate_size = 128;
  return shape;
}

TEST(PassMemory, OfAnInferenceIsOneLayersAndTheStream) {
  const auto shape = hand_shape();
  const StackPart part(shape, {}, 0);
  // result, stream, norm and activation: 10 * (3 * 64 + 128); a layer: two rms,
  // q k v, scores' sums, context, stream, gate and up:
  // 10 * (2 + 128 + 4 + 64 + 64 + 256)
  EXPECT_EQ(inference_pass_elements(part, {.tokens = 10, .wanted = 0}),
            3200u + 5180u);
}

TEST(PassMemory, OfATrainingIsAllLayersAndOneGradient) {
  const auto shape = hand_shape();
  const StackPart part(shape, {}, 0);
  const PassTokens batch{.tokens = 10, .wanted = 4};
  // each layer's buffers and its input; three numbers and all logits of 4 rows
  const std::uint64_t kept = 3200 + 4 * (5180 + 640) + 4 * (3 + 512);
  // of the result, of 4 rows; two streams, activation, context, q k v, and the
  // norms' sums
  const std::uint64_t backward = 644 + 2 * 640 + 1280 + 640 + 1280 + 128 + 64;
  EXPECT_EQ(train_pass_elements(part, {.batch = batch}), kept + backward);
  EXPECT_EQ(train_pass_elements(part, {.batch = batch, .recompute = true}),
            kept - 3 * 5180 + backward);
  EXPECT_EQ(train_pass_elements(part, {.batch = batch, .in_flight = 3}),
            3 * kept + backward);
}

TEST(PassMemory, StagesAndPeersHaveTheirShare) {
  const auto shape = hand_shape();
  const StackPart first(shape, parse_strategy("p3t2"), 0);
  const StackPart last(shape, parse_strategy("p3t2"), 2);
  EXPECT_EQ(first.layers, 2u);
  EXPECT_EQ(last.layers, 1u);
  EXPECT_EQ(last.qkv(), 64u);
  EXPECT_EQ(last.vocab, 256u);
  EXPECT_EQ(last.matrix_elements(), 64u * (64 + 32 + 128 + 64) + 64u * 256);
}

TEST(CallMemory, ACacheSlotIsRoundedToBlocks) {
  const auto shape = hand_shape();
  // 4 layers, 2 heads, 32 tokens, keys and values of 16
  EXPECT_EQ(cache_slot_elements(shape, {}, 0, 17), 4u * 2 * 32 * 32);
}

TEST(CallMemory, AMicroBatchTakesWholeSequences) {
  const auto shape = hand_shape();
  Placement place{.devices = {Rank{0}}, .micro_batch_tokens = 100};
  const auto needs = [&](std::uint32_t samples, std::int64_t tokens) {
    return active_bytes(
      CallKind::inference, shape, DType::f32, place,
      {.samples_per_step = samples, .max_sequence_tokens = tokens});
  };
  EXPECT_EQ(needs(10, 40), needs(2, 40)) << "two fit, three do not";
  EXPECT_EQ(needs(10, 500), needs(1, 500)) << "one goes whatever its length";
  EXPECT_LT(needs(1, 40), needs(2, 40));
}

} // namespace
} // namespace troupe::plans
