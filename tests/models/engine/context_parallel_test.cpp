// Context parallelism against one device: sequences that cp ranks cut, whole
// ones beside them, and ranks without a token. Losses of whole sequences are
// in context_losses_test.cpp, families in family_parallel_test.cpp.
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"
#include "models/parallel/parameters.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::column_of;
using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_prompts;
using troupe::testing::sequences_of;
using troupe::testing::TempFolder;
using troupe::testing::wide_shape;
using troupe::testing::write_random_model;

constexpr std::size_t context_tile = 96;

ModelShape context_shape() {
  ModelShape shape = wide_shape();
  shape.max_positions = 2048;
  return shape;
}

ModelShape context_experts() {
  ModelShape shape = context_shape();
  shape.family = "mixtral";
  shape.experts = {
    .count = 4, .per_token = 2, .width = 42, .router = {.renormalized = true}};
  return shape;
}

// Two sequences that are cut, one of them into runs of one length, and whole
// ones; micro-batches with both, and with either.
net::Rows cut_and_whole(std::size_t cp) {
  const std::size_t cut = 2 * cp * context_tile;
  return sequences_of({cut + 37, 20, 7, cut, 150, 33}, 75, 3);
}

TrainSpec context_sft(const net::Rows& rows, std::int64_t micro_batch_tokens) {
  TrainSpec train;
  train.fn = "sft_loss";
  train.mini_batches = {rows.samples, first_samples(3)};
  train.micro_batch_tokens = micro_batch_tokens;
  return train;
}

void expect_same_planes(const std::map<std::string, std::vector<float>>& got,
                        const std::map<std::string, std::vector<float>>& want,
                        double allowed) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want)
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(got.at(name)[i], values[i], allowed)
        << name << " entry " << i;
}

/// Returns "d1", or the tensor ranks of the strategy alone: their order of
/// sums, whose last bits AdamW's first steps turn into more, is tested
/// elsewhere.
std::string without_context(const char* strategy) {
  Strategy one = parse_strategy(strategy);
  one.dp = one.cp = one.pp = 1;
  one.zero = Zero::none;
  return to_string(one);
}

class ContextFolder {
protected:
  Engine::Spec spec(const ModelShape& shape) const {
    const auto folder
      = folder_ / (shape.family + (shape.scalar_head ? "-critic" : ""));
    if (!std::filesystem::exists(folder))
      write_random_model(folder, shape, 1);
    Engine::Spec spec = troupe::testing::compared_actor(folder);
    spec.scalar_head = shape.scalar_head;
    return spec;
  }
  void expect_same_training(const ModelShape& shape, const char* strategy,
                            const net::Rows& rows,
                            const TrainSpec& train) const {
    ParallelReplica alone(spec(shape), without_context(strategy));
    ParallelReplica split(spec(shape), strategy);
    const MetricSums want = alone.train(train, rows);
    const MetricSums got = split.train(train, rows);
    ASSERT_EQ(got.all().size(), want.all().size());
    for (const Sum& sum : want.all())
      EXPECT_NEAR(got.value(sum.name), want.value(sum.name),
                  1e-5 * std::max(1.0, want.value(sum.name)))
        << sum.name;
    expect_same_planes(split.plane(Plane::grad), alone.plane(Plane::grad),
                       1e-5);
    expect_same_planes(split.plane(Plane::weight), alone.plane(Plane::weight),
                       5e-5);
  }

  TempFolder folder_;
};

class ContextParallel : public ContextFolder,
                        public ::testing::TestWithParam<const char*> {
protected:
  static std::size_t cp() {
    return parse_strategy(GetParam()).cp;
  }
};

TEST_P(ContextParallel, TrainsLikeOneDevice_I1) {
  const net::Rows rows = cut_and_whole(cp());
  expect_same_training(context_shape(), GetParam(), rows,
                       context_sft(rows, 410));
}

TEST_P(ContextParallel, TrainsSequencesThatAreAllWholeLikeOneDevice_I1) {
  const net::Rows rows = sequences_of({20, 31, 7, 90, 5, 64}, 75, 4);
  expect_same_training(context_shape(), GetParam(), rows,
                       context_sft(rows, 60));
}

// Micro-batches of one whole sequence: it is rank 0's, and others have none.
TEST_P(ContextParallel, ARankWithoutTokensTakesPart_I1) {
  const net::Rows rows = sequences_of({20, 31, 7, 90, 5}, 75, 4);
  for (const ModelShape& shape : {context_shape(), context_experts()})
    expect_same_training(shape, GetParam(), rows, context_sft(rows, 1));
}

// Their metrics are of whole sequences, and of the tokens of all ranks.
TEST_P(ContextParallel, TrainsReplayedExpertsLikeOneDevice_I1) {
  net::Rows rows = cut_and_whole(cp());
  const ModelShape shape = context_experts();
  std::mt19937_64 random(5);
  std::vector<std::vector<std::int32_t>> experts;
  for (const std::uint32_t length : rows.at("sequence_ids").lengths) {
    auto& own = experts.emplace_back();
    for (std::uint32_t t = 0; t < length; ++t) {
      const bool recorded = random() % 3 > 0;
      for (std::int64_t layer = 0; layer < shape.num_layers; ++layer) {
        const auto first = static_cast<std::int32_t>(random() % 4);
        own.push_back(recorded ? first : -1);
        own.push_back(recorded ? (first + 1) % 4 : -1);
      }
    }
  }
  rows.add(column_of("routed_experts", DType::i32, experts));
  expect_same_training(shape, GetParam(), rows, context_sft(rows, 410));
}

TEST_P(ContextParallel, RecomputesActivationsWithTheSameBits) {
  const net::Rows rows = cut_and_whole(cp());
  ParallelReplica keeping(spec(context_shape()), GetParam());
  ParallelReplica recomputing(spec(context_shape()), GetParam());
  TrainSpec train = context_sft(rows, 410);
  keeping.train(train, rows);
  train.recompute = true;
  recomputing.train(train, rows);
  EXPECT_EQ(recomputing.plane(Plane::weight), keeping.plane(Plane::weight));
}

TEST_P(ContextParallel, TrainsTheSameBitsAgain_I8) {
  const net::Rows rows = cut_and_whole(cp());
  ParallelReplica once(spec(context_shape()), GetParam());
  ParallelReplica again(spec(context_shape()), GetParam());
  once.train(context_sft(rows, 410), rows);
  again.train(context_sft(rows, 410), rows);
  EXPECT_EQ(again.plane(Plane::weight), once.plane(Plane::weight));
}

// Devices store activations, and so what ranks gather, in bf16.
TEST_P(ContextParallel, TrainsInBf16Within2PercentOfFp32_I1) {
  const net::Rows rows = cut_and_whole(cp());
  Engine::Spec half = spec(context_shape());
  half.dtype = DType::bf16;
  ParallelReplica exact(spec(context_shape()), "d1");
  ParallelReplica rounded(half, GetParam());
  TrainSpec train = context_sft(rows, 410);
  train.mini_batches.resize(1); // a second gradient is of other weights
  const MetricSums want = exact.train(train, rows);
  const MetricSums got = rounded.train(train, rows);
  for (const char* key : {"train/loss", "train/grad_norm"})
    EXPECT_NEAR(got.value(key), want.value(key), 2e-2 * want.value(key));
  double squares = 0;
  double differences = 0;
  const auto wanted = exact.plane(Plane::grad);
  for (const auto& [name, values] : rounded.plane(Plane::grad))
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double own = wanted.at(name)[i];
      squares += own * own;
      differences += (values[i] - own) * (values[i] - own);
    }
  EXPECT_LT(differences, 2e-2 * 2e-2 * squares);
}

TEST_P(ContextParallel, InfersLikeOneDevice_I1) {
  const net::Rows rows = cut_and_whole(cp());
  ParallelReplica alone(spec(context_shape()), "d1");
  ParallelReplica split(spec(context_shape()), GetParam());
  const InferOptions options{
    .temperature = 0.7, .entropy = true, .micro_batch_tokens = 410};
  const net::Rows want = alone.infer("logprobs", rows, options);
  const net::Rows got = split.infer("logprobs", rows, options);
  for (const char* key : {"logprobs", "entropy"})
    EXPECT_THAT(got.at(key).as<float>(),
                ::testing::Pointwise(::testing::FloatNear(2e-5F),
                                     want.at(key).as<float>()))
      << key;
}

const auto context_name = [](const auto& test) { return test.param; };
INSTANTIATE_TEST_SUITE_P(Strategies, ContextParallel,
                         ::testing::Values("c2", "c3", "c2t2", "c2t2s",
                                           "d2c2z1", "c2z3", "d2c2z3", "c2p2",
                                           "c4p2"),
                         context_name);

// Whose frozen weights are whole: no z3.
class ContextAdapters : public ContextParallel {};

TEST_P(ContextAdapters, TrainLikeOneDevice_I1) {
  const net::Rows rows = cut_and_whole(cp());
  Engine::Spec adapted = spec(context_shape());
  adapted.adapters.lora
    = {.rank = 3, .alpha = 6, .targets = lora_targets(context_shape())};
  adapted.seed = 5;
  ParallelReplica alone(adapted, "d1");
  ParallelReplica split(adapted, GetParam());
  alone.train(context_sft(rows, 410), rows);
  split.train(context_sft(rows, 410), rows);
  expect_same_planes(split.plane(Plane::weight), alone.plane(Plane::weight),
                     5e-5);
}

INSTANTIATE_TEST_SUITE_P(Strategies, ContextAdapters,
                         ::testing::Values("c2", "c3", "c2t2", "c2t2s",
                                           "d2c2z1", "c2p2", "c4p2"),
                         context_name);

// Whose ranks compute whole rows: tensor parallelism sums in another order.
class ContextBits : public ContextParallel {};

TEST_P(ContextBits, LogProbabilitiesAreThoseOfOneDevice_I1_I8) {
  const net::Rows rows = cut_and_whole(cp());
  ParallelReplica alone(spec(context_shape()), "d1");
  ParallelReplica split(spec(context_shape()), GetParam());
  const InferOptions options{.entropy = true, .micro_batch_tokens = 410};
  const net::Rows want = alone.infer("logprobs", rows, options);
  const net::Rows got = split.infer("logprobs", rows, options);
  for (const char* key : {"logprobs", "entropy"})
    EXPECT_THAT(got.at(key).as<float>(),
                ::testing::ElementsAreArray(want.at(key).as<float>()))
      << key;
}

TEST_P(ContextBits, ValuesScoresAndLikeliestTokensAreThoseOfOneDevice_I1_I8) {
  const net::Rows rows = cut_and_whole(cp());
  ModelShape critic = context_shape();
  critic.scalar_head = true;
  const InferOptions options{.top_k = 4, .micro_batch_tokens = 410};
  const auto expect_same = [&](const ModelShape& shape, const char* fn,
                               const std::vector<const char*>& keys) {
    ParallelReplica alone(spec(shape), "d1");
    ParallelReplica split(spec(shape), GetParam());
    const net::Rows want = alone.infer(fn, rows, options);
    const net::Rows got = split.infer(fn, rows, options);
    for (const char* key : keys)
      EXPECT_THAT(got.at(key).as<float>(),
                  ::testing::ElementsAreArray(want.at(key).as<float>()))
        << key;
  };
  expect_same(critic, "values", {"values"});
  expect_same(critic, "scores", {"scores"});
  expect_same(context_shape(), "top_logprobs", {"top_logprobs"});
}
INSTANTIATE_TEST_SUITE_P(Strategies, ContextBits,
                         ::testing::Values("c2", "c3", "d2c2", "c2z3", "c2p2"),
                         context_name);

class ContextRules : public ContextFolder, public ::testing::Test {};

TEST_F(ContextRules, ABalanceLossNeedsWholeSequences) {
  Engine::Spec balanced = spec(context_experts());
  balanced.strategy = parse_strategy("c2");
  balanced.optimizer.router_aux_loss_coef = 0.1;
  EXPECT_THROW(Engine{balanced}, InvariantError);
}

TEST_F(ContextRules, ARankGeneratesWithoutTheOthersOfItsContext) {
  ParallelReplica replica(spec(context_shape()), "c2");
  const net::Rows prompts = random_prompts(75);
  GenerateOptions options;
  options.max_new_tokens = 3;
  replica.run([&](Engine& engine, RunContext& context, std::uint32_t dp) {
    if (dp == 0)
      return; // it has no prompts
    EXPECT_EQ(engine.generate(prompts, options, context).num_samples(), 6U);
  });
}

} // namespace
} // namespace troupe::models
