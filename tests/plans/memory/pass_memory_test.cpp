// Counts of numbers by hand for a model with 4 layers of width 64, 4 heads of
// 16 of which 2 have keys, an MLP of 128 and 512 tokens.
// tests/models/kernels/device_memory_test.cpp checks that engines use as much.
#include "plans/memory/call_memory.hpp"
#include "plans/memory/pass_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::plans {
namespace {

constexpr StoredTypes cpu_types = stored_types(StorageRule::host, DType::bf16);
constexpr StoredTypes gpu_types = stored_types(StorageRule::gpu, DType::bf16);

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

TEST(PassMemory, OfInferenceIsOneLayerAndTheResidualStream) {
  const auto shape = hand_shape();
  const StackPart part(shape, {}, 0);
  // result, stream, norm and activation: 10 * (3 * 64 + 128); a layer: two rms,
  // q k v, scores' sums, context, stream, gate and up:
  // 10 * (2 + 128 + 4 + 64 + 64 + 256)
  const PassTokens batch{.tokens = 10, .wanted = 0};
  EXPECT_EQ(inference_pass_bytes(part, batch, cpu_types), 4 * (3200u + 5180u));
  EXPECT_EQ(inference_pass_bytes(part, batch, gpu_types),
            2 * (3200u + 5120u) + 4 * 60u)
    << "two rms and the scores' sums of 4 heads are fp32";
}

TEST(PassMemory, OfTrainingIsAllLayersAndOneGradient) {
  const auto shape = hand_shape();
  const StackPart part(shape, {}, 0);
  const PassTokens batch{.tokens = 10, .wanted = 4};
  // each layer's buffers and its input; three numbers and all logits of 4 rows
  const std::uint64_t kept = 3200 + 4 * (5180 + 640) + 4 * (3 + 512);
  // of the result, of 4 rows; two streams, activation, context, q k v, and the
  // norms' sums
  const std::uint64_t backward = 644 + 2 * 640 + 1280 + 640 + 1280 + 128 + 64;
  EXPECT_EQ(train_pass_bytes(part, {.batch = batch}, cpu_types),
            4 * (kept + backward));
  EXPECT_EQ(
    train_pass_bytes(part, {.batch = batch, .recompute = true}, cpu_types),
    4 * (kept - 3 * 5180 + backward));
  EXPECT_EQ(train_pass_bytes(part, {.batch = batch, .in_flight = 3}, cpu_types),
            4 * (3 * kept + backward));
  // of layers their sums, the head, gradients of its rows and of norms
  const std::uint64_t wide = 4 * 60 + 4 * (3 + 512) + 4 + 128 + 64;
  EXPECT_EQ(train_pass_bytes(part, {.batch = batch}, gpu_types),
            2 * (kept + backward) + 2 * wide);
}

TEST(PassMemory, RanksOfAContextHaveAllKeysOfALayerTwiceAndTheirGradients) {
  const auto shape = hand_shape();
  const StackPart part(shape, {}, 0);
  PassTokens batch{.tokens = 10, .wanted = 0};
  const auto inference = inference_pass_bytes(part, batch, cpu_types);
  const auto train = train_pass_bytes(part, {.batch = batch}, cpu_types);
  batch.gathered = 40; // of 2 heads of 16
  EXPECT_EQ(inference_pass_bytes(part, batch, cpu_types) - inference,
            4 * 2 * 40u * 64);
  EXPECT_EQ(train_pass_bytes(part, {.batch = batch}, cpu_types) - train,
            4 * (3 * 40u * 64 - 64))
    << "in place of the norms' sums";
}

TEST(PassMemory, LogitsAreCountedByWhatADeviceComputesAtATime) {
  auto shape = hand_shape();
  shape.vocab_size = 131072; // as many rows as here are not kept
  const StackPart part(shape, {}, 0);
  PassTokens batch{.tokens = 8192, .wanted = 8192};
  for (const auto& types : {cpu_types, gpu_types}) {
    batch.logits_at_once = defaults::logits_at_once;
    const auto few = inference_pass_bytes(part, batch, types);
    batch.logits_at_once = defaults::logits_at_once_on_gpu;
    const auto more = inference_pass_bytes(part, batch, types) - few;
    EXPECT_GT(more, 4 * std::uint64_t{4000} * 131072) << "4092 rows, not 24";
    EXPECT_LT(more, 4 * (std::uint64_t{4096} * 131072 + 4096 * 100));
  }
}

TEST(PassMemory, ExpertsAreCountedByTheRowsThatADeviceGathersAtATime) {
  auto shape = hand_shape();
  shape.experts = {.count = 8, .per_token = 2, .width = 32};
  const StackPart part(shape, {}, 0);
  PassTokens batch{.tokens = 10, .wanted = 0};
  const auto one_expert = inference_pass_bytes(part, batch, gpu_types);
  batch.grouped_rows_at_once = 15;
  EXPECT_EQ(inference_pass_bytes(part, batch, gpu_types) - one_expert,
            2 * 5u * (64 + 64 + 32)); // in and out of experts, and activations
  batch.grouped_rows_at_once = 1000;
  EXPECT_EQ(inference_pass_bytes(part, batch, gpu_types) - one_expert,
            2 * 10u * (64 + 64 + 32));
}

TEST(PassMemory, StagesAndTensorPeersHaveTheirShare) {
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

TEST(CallMemory, TheCacheOfAGpuIsAsProductsAre) {
  const auto shape = hand_shape();
  const BatchSizes on_host{
    .samples_per_step = 64, .max_sequence_tokens = 32, .max_new_tokens = 31};
  auto sizes = on_host;
  sizes.engine.storage = StorageRule::gpu;
  const auto slot = cache_slot_elements(shape, {}, 0, 32);
  const auto added = [&](const BatchSizes& of) {
    Placement place{.devices = {Rank{0}}, .responses = 8};
    const auto few
      = active_bytes(CallKind::generate, shape, DType::bf16, place, of);
    place.responses = 64;
    return active_bytes(CallKind::generate, shape, DType::bf16, place, of)
           - few;
  };
  EXPECT_GT(added(on_host), 56 * 4 * slot);
  EXPECT_LT(added(sizes), 56 * 4 * slot);
  EXPECT_GT(added(sizes), 56 * 2 * slot);
  sizes.kv_cache_bytes = 10 * 2 * slot;
  EXPECT_EQ(responses_under_way(shape, DType::bf16, {}, sizes), 10u);
  EXPECT_EQ(responses_under_way(shape, DType::f32, {}, sizes), 5u);
}

TEST(CallMemory, ACacheWithPagesStartsMoreThanItHoldsAtFullLength) {
  const auto shape = hand_shape();
  BatchSizes sizes{
    .samples_per_step = 64, .max_sequence_tokens = 32, .max_new_tokens = 31};
  const auto at_once = [&](std::uint32_t responses) {
    return sequences_under_way(shape, DType::bf16, {.responses = responses},
                               sizes);
  };
  EXPECT_EQ(at_once(10), 10u) << "pages of whole sequences";
  sizes.engine.storage = StorageRule::gpu;
  EXPECT_EQ(at_once(10), 40u);
  EXPECT_EQ(at_once(20), 64u) << "all of them";
  EXPECT_EQ(at_once(0), 64u);
  const auto bytes = [&] {
    return active_bytes(CallKind::generate, shape, DType::bf16,
                        {.devices = {Rank{0}}, .responses = 10}, sizes);
  };
  const auto of_all = bytes();
  sizes.max_sequences = 10;
  EXPECT_EQ(at_once(10), 10u) << "the settings' limit";
  // the cache is the same; 30 rows of two streams, q k v, context and three of
  // the MLP, and of a drawn token its last state and its logits
  EXPECT_EQ(of_all - bytes(),
            30u * (2 * (128 + 128 + 64 + 384 + 64) + 4 * 512));
  sizes.engine.serves = true;
  sizes.max_sequences = 0;
  EXPECT_EQ(at_once(10), 10u) << "a server has pages of its own";
}

TEST(CallMemory, AMicroBatchHoldsWholeSequences) {
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

TEST(CallMemory, ARankOfAContextHasItsShareOfASequence) {
  const auto shape = hand_shape();
  const BatchSizes sizes{
    .samples_per_step = 8, .max_sequence_tokens = 2000, .max_new_tokens = 700};
  const auto needs = [&](Strategy strategy, CallKind kind) {
    return active_bytes(kind, shape, DType::f32, {.strategy = strategy}, sizes);
  };
  const Strategy cut{.dp = 8, .cp = 2};
  const StackPart part(shape, cut, 0);
  // runs of 500, of which one rank has the last
  EXPECT_EQ(needs(cut, CallKind::inference),
            inference_pass_bytes(
              part,
              {.tokens = 2 * 1000, .wanted = 2 * 500, .gathered = 2 * 2000},
              cpu_types))
    << "2 of 8 samples for each of 4 groups";
  EXPECT_EQ(needs(cut, CallKind::generate),
            needs({.dp = 8}, CallKind::generate))
    << "an evaluation deals whole ones to all";
  const auto whole = needs({.dp = 4}, CallKind::train);
  EXPECT_LT(needs(cut, CallKind::train), 0.6 * double(whole));
  EXPECT_GT(needs(cut, CallKind::train), 0.5 * double(whole));
}

std::uint64_t most_of_stages(CallKind kind, const ModelShape& shape,
                             const Placement& place, const BatchSizes& sizes) {
  std::uint64_t most = 0;
  for (std::uint32_t stage = 0; stage < place.strategy.pp; ++stage)
    most = std::max(most,
                    active_bytes(kind, shape, DType::f32, place, sizes, stage));
  return most;
}

TEST(CallMemory, NoStageNeedsMoreThanTheFirstAndTheLast) {
  const BatchSizes sizes{.samples_per_step = 64, .max_sequence_tokens = 40};
  auto shape = hand_shape();
  shape.num_layers = 13;
  for (const std::uint32_t pp : {1u, 2u, 3u, 5u, 8u, 13u})
    for (const std::int64_t vocab : {64, 65536}) {
      shape.vocab_size = vocab;
      const Placement place{.strategy = {.dp = 2, .pp = pp}};
      for (const auto kind :
           {CallKind::generate, CallKind::inference, CallKind::train})
        EXPECT_EQ(active_bytes(kind, shape, DType::f32, place, sizes),
                  most_of_stages(kind, shape, place, sizes))
          << pp << " stages, " << to_string(kind);
    }
}

} // namespace
} // namespace troupe::plans
