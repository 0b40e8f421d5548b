// The roofline as a test: launches, bytes and copies that stop the host, per
// layer and for the rest of a step, of what a GPU would be given. CountedModel
// from the operations of AtenBackend on the CPU; a layer is what the second one
// of a model adds to the first. The limits are what the code does today
// (plans/cost/gpu_counts.hpp).
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/workspace.hpp"
#include "models/parallel/parameters.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/decoder.hpp"
#include "models/transformer/transformer.hpp"
#include "models/transformer/vocab_logprobs.hpp"
#include "plans/cost/gpu_layer.hpp"
#include "plans/cost/layer_traffic.hpp"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "tests/support/models/aten_counter.hpp"
#include "tests/support/models/counted_model.hpp"

#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::AtenCounter;
using troupe::testing::AtenCounts;
using troupe::testing::counted_experts;
using troupe::testing::counted_shape;
using troupe::testing::CountedModel;
using troupe::testing::spread_tokens;

using plans::gpu_counts;

// The table of docs/gpu_tests.md, which the cost model predicts from.
struct Row {
  const char* what;
  plans::GpuCounts limit; ///< what the code does today
  const char* aim;        ///< launches, traffic, blocking copies
};

constexpr Row decode_layer{"layer of a decode step", gpu_counts.decode_layer,
                           "10, 1.2, 0"};
constexpr Row decode_rest{"rest of a decode step", gpu_counts.decode_rest,
                          "none"};
constexpr Row score_layer{"layer of a pass without gradients",
                          gpu_counts.score_layer, "none"};
constexpr Row score_rest{"rest of a pass without gradients",
                         gpu_counts.score_rest, "none"};
constexpr Row train_layer{"layer of a micro-batch", gpu_counts.train_layer,
                          "any, 1.5, 0"};
constexpr Row train_rest{"rest of a micro-batch", gpu_counts.train_rest,
                         "none"};
constexpr Row expert_layer{"layer with experts of a micro-batch",
                           gpu_counts.expert_layer, "any, 1.5, 0"};
constexpr Row expert_score{"layer with experts of a pass without gradients",
                           gpu_counts.expert_score, "any, 1.2, 0"};
constexpr Row expert_decode{"layer with experts of a decode step",
                            gpu_counts.expert_decode, "any, 1.2, 0"};
constexpr Row single_decode{"layer of a decode step, experts one by one",
                            gpu_counts.single_decode, "groups"};
constexpr Row single_experts{"layer of a micro-batch, experts one by one",
                             gpu_counts.single_experts, "groups"};
constexpr Row single_score{"layer without gradients, experts one by one",
                           gpu_counts.single_score, "groups"};

constexpr std::int64_t slots = 2;       // 32 beside 8B
constexpr std::int64_t many_slots = 32; // whose tokens go to all experts
constexpr std::int64_t num_keys = 1024; // of a sequence that decodes
constexpr std::int64_t sequences = 4;
constexpr std::int64_t length = 128;
constexpr std::int64_t batch_tokens = sequences * length; // 8192 beside 8B

/// Returns the least bytes of a layer of a decode step.
double least_of_decode(const ModelShape& shape, std::int64_t rows = slots) {
  return plans::least_decode_bytes(plans::LayerTraffic(shape),
                                   plans::layer_weights(shape),
                                   static_cast<double>(rows), num_keys);
}

/// Returns those of a layer of a pass without gradients.
double least_of_score(const ModelShape& shape) {
  return plans::least_forward_bytes(plans::LayerTraffic(shape),
                                    plans::layer_weights(shape), batch_tokens);
}

/// Returns those of a layer of a micro-batch.
double torchtitan_bytes(const ModelShape& shape) {
  return least_of_score(shape)
         + plans::least_backward_bytes(plans::LayerTraffic(shape),
                                       plans::layer_weights(shape),
                                       batch_tokens);
}

/// Returns those of the head.
double least_of_rest(const ModelShape& shape, std::int64_t rows,
                     std::int64_t passes) {
  return static_cast<double>(passes)
         * plans::least_rest_bytes(static_cast<double>(shape.hidden_size),
                                   static_cast<double>(shape.vocab_size),
                                   static_cast<double>(rows));
}

/// Returns what the second of two equal passes takes: the first makes room.
AtenCounts second_feed(CountedModel& model, std::span<const DecodeToken> fed,
                       KvCache& cache) {
  Decoder decoder(model.shape, model.weights, model.backend);
  decoder.pack();
  const auto step = [&] { decoder.feed(fed, cache, RunContext{}); };
  step();
  const AtenCounter counter;
  step();
  return counter.counts();
}

AtenCounts decode_step(const ModelShape& shape, std::int64_t num_slots = slots,
                       bool groups = true) {
  CountedModel model(shape, groups);
  if (shape.experts.exist())
    spread_tokens(model);
  KvCache cache(model.shape, model.backend, model.backend.storage(DType::bf16));
  cache.reset(num_slots, 2 * num_keys);
  std::vector<DecodeToken> row;
  std::vector<std::int64_t> rows;
  std::vector<DrawKey> names; // of different draws
  for (std::int32_t slot = 0; slot < num_slots; ++slot) {
    row.push_back({7 + slot, cache.take_slot(), num_keys - 1});
    cache.make_room(slot, 0, num_keys);
    rows.push_back(slot);
    names.push_back({{1, 2}, static_cast<std::uint32_t>(slot), 4});
  }
  Decoder decoder(model.shape, model.weights, model.backend);
  decoder.pack();
  const RunContext context;
  DrawnTokens before;
  const auto step = [&] { // as models/generate/step_in_flight.hpp
    decoder.feed(row, cache, context, {rows, names, {}});
    DrawnTokens drawn = decoder.drawn();
    before.wait();
    before = std::move(drawn);
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i].id = before.id_in_next_pass(i);
  };
  step(); // makes room
  const AtenCounter counter;
  step();
  return counter.counts();
}

/// A pass with the prompt tokens of a micro-batch, each after `cached` tokens.
AtenCounts prompt_pass(const ModelShape& shape, std::int32_t cached,
                       bool groups = true) {
  CountedModel model(shape, groups);
  if (shape.experts.exist())
    spread_tokens(model);
  KvCache cache(model.shape, model.backend, model.backend.storage(DType::bf16));
  cache.reset(sequences, cached + length);
  std::vector<DecodeToken> prompts;
  for (int i = 0; i < sequences; ++i) {
    const std::int32_t slot = cache.take_slot();
    cache.make_room(slot, 0, cached + length);
    for (std::int32_t t = 0; t < length; ++t)
      prompts.push_back({7 + t, slot, cached + t});
  }
  return second_feed(model, prompts, cache);
}

enum class Pass : std::uint8_t { score, train };

/// `groups`: experts are multiplied in groups, not one by one.
AtenCounts micro_batch(const ModelShape& shape, Pass pass, bool groups = true) {
  CountedModel model(shape, groups);
  RopeTables rope(model.shape, model.backend);
  rope.grow(length);
  Transformer stack{model.shape, model.weights, rope};
  stack.backend = &model.backend;
  if (shape.experts.exist())
    spread_tokens(model);
  std::vector<std::int32_t> ids(length);
  std::iota(ids.begin(), ids.end(), 5);
  const std::vector<std::span<const std::int32_t>> all(sequences, ids);
  const PackedTokens batch = pack(all);
  WantedTokens wanted;
  for (std::int64_t t = 0; t < batch_tokens; ++t) {
    wanted.positions_R.push_back(t);
    wanted.targets_R.push_back(6);
  }
  VocabularyHead head{model.weights.head};
  head.backend = &model.backend;
  head.operands = DType::bf16;
  Workspace workspace(model.backend.memory());
  const RunContext context;
  const auto count = static_cast<std::size_t>(batch_tokens);
  const std::vector<float> d_logprobs(count, 0.5F);
  const auto step = [&] {
    Saved saved;
    const bool trains = pass == Pass::train;
    const TypedPtr hidden
      = forward(stack, batch, context, workspace, trains ? &saved : nullptr);
    const auto found = token_statistics(head, hidden, wanted, workspace,
                                        /*keep_logits=*/trains);
    model.backend.read(found.logprobs_R, wanted.size());
    if (!trains)
      return workspace.reset();
    const std::int64_t floats = hidden_floats(stack, batch, context);
    const TypedPtr d_hidden = workspace.take(floats, hidden.type());
    model.backend.fill(d_hidden, floats, 0.0F);
    token_statistics_backward(head, hidden, wanted, found,
                              {d_logprobs.data(), nullptr}, d_hidden,
                              model.grads.head, workspace);
    backward(stack, batch, saved, d_hidden, model.grads, context, workspace);
    workspace.reset();
  };
  const AtenCounter counter;
  step();
  return counter.counts();
}

void expect_within(const Row& row, const AtenCounts& counts, double least) {
  const double traffic = static_cast<double>(counts.bytes) / least;
  const std::int64_t blocking = counts.uploads + counts.downloads;
  const std::string words = std::string(row.what) + ": "
                            + std::to_string(counts.launches) + " launches ("
                            + counts.words() + "), " + std::to_string(traffic)
                            + " times the least, " + std::to_string(blocking)
                            + " blocking copies; the aim is " + row.aim;
  EXPECT_EQ(counts.launches, row.limit.launches) << words;
  EXPECT_LE(traffic, row.limit.traffic) << words;
  EXPECT_EQ(blocking, row.limit.blocking_copies) << words;
  EXPECT_EQ(counts.unknown, std::set<std::string>{})
    << "which costs do they have? tests/support/models/aten_costs.cpp";
}

TEST(AtenCounts, OfADecodeStepAreWithinTheirBudget) {
  const ModelShape shape = counted_shape(1);
  const AtenCounts one = decode_step(shape);
  const AtenCounts layer = decode_step(counted_shape(2)).minus(one);
  expect_within(decode_layer, layer, least_of_decode(shape));
  expect_within(decode_rest, one.minus(layer), least_of_rest(shape, slots, 1));
}

/// Returns the counts of the layer that a second one adds.
template <class Count>
AtenCounts of_a_layer(const Count& count) {
  return count(2).minus(count(1));
}

TEST(AtenCounts, OfPromptsAreWithinTheirBudget) {
  const auto dense = [](std::int32_t cached) {
    return of_a_layer([&](std::int64_t layers) {
      return prompt_pass(counted_shape(layers), cached);
    });
  };
  const auto experts = [](bool groups) {
    return of_a_layer([&](std::int64_t layers) {
      return prompt_pass(counted_experts(layers), /*cached=*/0, groups);
    });
  };
  const plans::GpuPromptCounts& limits = plans::gpu_prompt_counts;
  const double least = least_of_score(counted_shape(1));
  expect_within({"new prompts", limits.new_layer, "none"}, dense(0), least);
  expect_within({"continued prompts", limits.continued_layer, "none"},
                dense(num_keys), least);
  const double least_of_experts = least_of_score(counted_experts(1));
  expect_within({"prompts with experts", limits.expert_layer, "none"},
                experts(/*groups=*/true), least_of_experts);
  expect_within({"prompts, experts one by one", limits.single_experts, "none"},
                experts(/*groups=*/false), least_of_experts);
}

TEST(AtenCounts, OfAPassWithoutGradientsAreWithinTheirBudget) {
  const ModelShape shape = counted_shape(1);
  const AtenCounts one = micro_batch(shape, Pass::score);
  const AtenCounts layer
    = micro_batch(counted_shape(2), Pass::score).minus(one);
  expect_within(score_layer, layer, least_of_score(shape));
  expect_within(score_rest, one.minus(layer),
                least_of_rest(shape, batch_tokens, 1));
}

TEST(AtenCounts, OfAMicroBatchAreWithinTheirBudget) {
  const ModelShape shape = counted_shape(1);
  const AtenCounts one = micro_batch(shape, Pass::train);
  const AtenCounts layer
    = micro_batch(counted_shape(2), Pass::train).minus(one);
  expect_within(train_layer, layer, torchtitan_bytes(shape));
  expect_within(train_rest, one.minus(layer),
                least_of_rest(shape, batch_tokens, 3));
}

AtenCounts expert_counts(Pass pass, bool groups, std::int64_t experts) {
  return of_a_layer([&](std::int64_t layers) {
    return micro_batch(counted_experts(layers, experts), pass, groups);
  });
}

AtenCounts expert_decode_counts(bool groups, std::int64_t experts) {
  return of_a_layer([&](std::int64_t layers) {
    return decode_step(counted_experts(layers, experts), many_slots, groups);
  });
}

TEST(AtenCounts, OfALayerWithExpertsAreWithinTheirBudget) {
  constexpr std::int64_t all = plans::num_counted_experts;
  const ModelShape shape = counted_experts(1);
  expect_within(expert_layer, expert_counts(Pass::train, /*groups=*/true, all),
                torchtitan_bytes(shape));
  expect_within(expert_score, expert_counts(Pass::score, /*groups=*/true, all),
                least_of_score(shape));
  expect_within(single_experts,
                expert_counts(Pass::train, /*groups=*/false, all),
                torchtitan_bytes(shape));
  expect_within(single_score, expert_counts(Pass::score, /*groups=*/false, all),
                least_of_score(shape));
  expect_within(expert_decode, expert_decode_counts(/*groups=*/true, all),
                least_of_decode(shape, many_slots));
  expect_within(single_decode, expert_decode_counts(/*groups=*/false, all),
                least_of_decode(shape, many_slots));
}

TEST(AtenCounts, GroupsTakeAsManyLaunchesForHalfTheExperts) {
  constexpr std::int64_t all = plans::num_counted_experts;
  const auto more = [](const AtenCounts& of_all, const AtenCounts& of_half) {
    return double(of_all.launches - of_half.launches) / (all / 2);
  };
  const auto launches = [&](Pass pass, bool groups) {
    return more(expert_counts(pass, groups, all),
                expert_counts(pass, groups, all / 2));
  };
  EXPECT_EQ(launches(Pass::train, /*groups=*/true), 0);
  EXPECT_EQ(launches(Pass::score, /*groups=*/true), 0);
  EXPECT_EQ(launches(Pass::train, /*groups=*/false),
            plans::launches_per_expert.train);
  EXPECT_EQ(launches(Pass::score, /*groups=*/false),
            plans::launches_per_expert.score);
  for (const bool groups : {true, false})
    EXPECT_EQ(more(expert_decode_counts(groups, all),
                   expert_decode_counts(groups, all / 2)),
              groups ? 0 : plans::launches_per_expert.decode);
}

} // namespace
} // namespace troupe::models
