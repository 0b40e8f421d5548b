// Features of only some families (norms of heads and after layers, windows,
// caps, learned positions, parallel residuals, experts) under strategies that
// shard them, against one device.
#include "config/model/family.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <tuple>

namespace troupe::models {
namespace {

using troupe::testing::expect_same_responses;
using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_prompts;
using troupe::testing::random_sequences;
using troupe::testing::sequences_of;
using troupe::testing::TempFolder;
using troupe::testing::write_random_model;

ExpertShape experts_of(const std::string& family, std::int64_t width) {
  if (family == "glm4_moe")
    return {.count = 8,
            .per_token = 3,
            .width = 13,
            .shared_width = 26,
            .dense_layers = {true, false},
            .router = {.score = RouterScore::sigmoid,
                       .corrected = true,
                       .groups = 4,
                       .chosen_groups = 2,
                       .scale = 1.5}};
  if (family.ends_with("moe") || family == "mixtral")
    return {.count = 4,
            .per_token = 2,
            .width = width,
            .router = {.renormalized = family == "mixtral"}};
  return {};
}

ModelShape small_model_of(const char* family) {
  const ModelShape sizes = troupe::testing::small_shape();
  ModelShape shape = find_family(family)->traits;
  shape.family = family;
  shape.num_layers = 2;
  shape.num_heads = 4;
  const bool has_as_many_keys
    = find_family(family)->keys.kv_heads.empty(); // GPT-2, GPT-NeoX
  shape.num_kv_heads = has_as_many_keys ? 4 : 2;
  shape.head_dim = 8;
  shape.hidden_size = 32;
  shape.intermediate_size = 42;
  shape.vocab_size = 75;
  shape.max_positions = 1024;
  shape.eos = sizes.eos;
  shape.tied_embeddings = find_family(family)->defaults.tied;
  if (family == std::string("mistral"))
    shape.sliding_window = 5;
  if (family == std::string("ministral")) {
    shape.sliding_window = 5;
    shape.windowed_layers = {false, true};
  }
  shape.experts = experts_of(family, shape.intermediate_size);
  if (family == std::string("smollm3"))
    shape.unrotated_layers = {false, true};
  if (family == std::string("granite"))
    shape.multipliers
      = {.embedding = 3, .attention = 0.2, .residual = 0.6, .logits = 2};
  if (find_family(family)->rotates_part)
    shape.rope.share = 0.5;
  if (family == std::string("olmo3")) {
    shape.rope.local_theta = 500000;
    shape.sliding_window = 5;
    shape.windowed_layers = {true, false};
  }
  if (family == std::string("gemma3_text")) {
    shape.rope.local_theta = 100;
    shape.multipliers.query_scalar = 12;
    shape.sliding_window = 5;
    shape.windowed_layers = {true, false};
  }
  if (family == std::string("gemma2")) {
    shape.multipliers.query_scalar = 12;
    shape.caps.scores = 4;
    shape.caps.logits = 5;
    shape.sliding_window = 5;
    shape.windowed_layers = {true, false};
  }
  return shape;
}

class FamilyParallel
  : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
protected:
  Engine::Spec spec() const {
    const auto folder = folder_ / "model";
    if (!std::filesystem::exists(folder))
      write_random_model(folder, small_model_of(std::get<0>(GetParam())), 1);
    return troupe::testing::trained_actor(folder);
  }

  // Short sequences, or some that cp ranks cut and whole ones beside them.
  static net::Rows rows() {
    const std::size_t cp = parse_strategy(std::get<1>(GetParam())).cp;
    if (cp == 1)
      return random_sequences(9, 75, 20, 2);
    const std::size_t cut = 2 * cp * 96;
    return sequences_of({cut + 13, 20, 9, cut, 100}, 75, 2);
  }

  TempFolder folder_;
};

TEST_P(FamilyParallel, TrainsLikeOneDevice_I1) {
  const net::Rows rows = FamilyParallel::rows();
  TrainSpec train;
  train.fn = "sft_loss";
  train.mini_batches = {rows.samples};
  train.micro_batch_tokens = 40;
  ParallelReplica alone(spec(), "d1");
  ParallelReplica split(spec(), std::get<1>(GetParam()));
  const MetricSums want = alone.train(train, rows);
  const MetricSums got = split.train(train, rows);
  EXPECT_NEAR(got.value("train/loss"), want.value("train/loss"), 1e-5);
  EXPECT_NEAR(got.value("train/grad_norm"), want.value("train/grad_norm"),
              1e-5 * want.value("train/grad_norm"));
  // sums in another order round by a share of the whole gradient
  const double allowed = 1e-5 * std::max(1.0, want.value("train/grad_norm"));
  const auto grads = alone.plane(Plane::grad);
  const auto split_grads = split.plane(Plane::grad);
  ASSERT_EQ(split_grads.size(), grads.size());
  for (const auto& [name, values] : grads)
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(split_grads.at(name)[i], values[i], allowed)
        << name << " entry " << i;
}

// Under strategies that do not shard weights over dp ranks.
class FamilyGeneration : public FamilyParallel {};

TEST_P(FamilyGeneration, GivesTheSameTokens_I1_I2) {
  const net::Rows prompts = random_prompts(75);
  const GenerateOptions options
    = {.max_new_tokens = 12, .seed = 5, .max_sequences = 4, .stop_ids = {3}};
  ParallelReplica alone(spec(), "d1");
  ParallelReplica split(spec(), std::get<1>(GetParam()));
  const net::Rows want = alone.generate(prompts, options);
  const net::Rows got = split.generate(prompts, options);
  expect_same_responses(got, want);
}

const auto families = ::testing::Values(
  "qwen3", "qwen3_moe", "mistral", "ministral", "mixtral", "gemma", "gemma2",
  "gemma3_text", "gpt2", "granite", "phi3", "smollm3", "olmo2", "olmo3",
  "gpt_neox", "glm", "glm4", "glm4_moe", "olmoe");
const auto family_name = [](const auto& test) {
  return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
};
INSTANTIATE_TEST_SUITE_P(
  All, FamilyParallel,
  ::testing::Combine(families, ::testing::Values("t2", "t4", "t2s", "p2t2",
                                                 "d2z1", "d2z3", "d2p2z3")),
  family_name);
INSTANTIATE_TEST_SUITE_P(
  Context, FamilyParallel,
  ::testing::Combine(families,
                     ::testing::Values("c2", "c2t2", "d2c2z1", "c4p2")),
  family_name);
const auto families_with_experts
  = ::testing::Values("mixtral", "qwen3_moe", "glm4_moe", "olmoe");
INSTANTIATE_TEST_SUITE_P(
  Experts, FamilyParallel,
  ::testing::Combine(families_with_experts,
                     ::testing::Values("t2e2", "t4e4", "t2e2s", "p2t2e2",
                                       "d2t2e2z1", "d2t2e2z3", "d2e2", "d4e2z1",
                                       "d2t2e4", "d2p2e2", "d4e2")),
  family_name);
INSTANTIATE_TEST_SUITE_P(
  Experts, FamilyGeneration,
  ::testing::Combine(families_with_experts,
                     ::testing::Values("t2e2", "t4e4", "t2e2s", "p2t2e2")),
  family_name);
INSTANTIATE_TEST_SUITE_P(All, FamilyGeneration,
                         ::testing::Combine(families,
                                            ::testing::Values("t2", "t4", "t2s",
                                                              "p2t2", "d2z3")),
                         family_name);

} // namespace
} // namespace troupe::models
