// Losses that read whole sequences, which cp ranks cut: each rank computes them
// of all outputs, and has the gradient of its own. Against one device.
#include "models/engine/engine.hpp"
#include "models/parallel/parameters.hpp"

#include <ATen/ATen.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace troupe::models {
namespace {

using troupe::testing::column_of;
using troupe::testing::ParallelReplica;
using troupe::testing::sequences_of;
using troupe::testing::TempFolder;
using troupe::testing::wide_shape;
using troupe::testing::write_random_model;

constexpr std::int32_t context_vocab = 75;

// Returns a column with `width` numbers in [least, least + 1) per token.
net::Column random_column(const std::string& key, const net::Column& ids,
                          float least, std::uint32_t width = 1) {
  std::mt19937_64 random(7);
  std::vector<std::vector<float>> values;
  for (const std::uint32_t length : ids.lengths) {
    auto& own = values.emplace_back();
    for (std::uint32_t i = 0; i < length * width; ++i)
      own.push_back(least + static_cast<float>(random() % 1000) / 1000);
  }
  return column_of(key, DType::f32, values);
}

// Two of these sequences are cut by two ranks, and two by three.
net::Rows context_responses() {
  return sequences_of({600, 20, 390, 150, 580, 9}, context_vocab, 3);
}

net::Rows with_column(net::Rows rows, const std::string& key, float least) {
  rows.add(random_column(key, rows.at("sequence_ids"), least));
  return rows;
}

// Returns pairs of sequences of other lengths, with masks and what a reference
// found.
net::Rows context_pairs() {
  const net::Rows chosen = context_responses();
  const net::Rows rejected
    = sequences_of({410, 31, 20, 590, 400, 12}, context_vocab, 4);
  net::Rows pairs(chosen.samples, {});
  for (const auto& [prefix, rows] :
       {std::pair{std::string("chosen_"), chosen}, {"rejected_", rejected}}) {
    net::Column ids = rows.at("sequence_ids");
    net::Column mask = rows.at("loss_mask");
    pairs.add(random_column(prefix + "ref_logprobs", ids, -5));
    ids.key = prefix + "ids";
    mask.key = prefix + "loss_mask";
    pairs.add(std::move(ids));
    pairs.add(std::move(mask));
  }
  return pairs;
}

class ContextLosses : public ::testing::TestWithParam<const char*> {
protected:
  Engine::Spec spec(bool scalar_head) const {
    ModelShape shape = wide_shape();
    shape.max_positions = 1024;
    shape.scalar_head = scalar_head;
    const auto folder = folder_ / (scalar_head ? "critic" : "actor");
    if (!std::filesystem::exists(folder))
      write_random_model(folder, shape, 1);
    Engine::Spec spec = troupe::testing::trained_actor(folder);
    spec.scalar_head = scalar_head;
    return spec;
  }
  void expect_same_training(const Engine::Spec& spec, TrainSpec train,
                            const net::Rows& rows) const {
    train.mini_batches = {rows.samples, {rows.samples[0], rows.samples[3]}};
    train.micro_batch_tokens = 700;
    ParallelReplica alone(spec, "d1");
    ParallelReplica split(spec, GetParam());
    const MetricSums want = alone.train(train, rows);
    const MetricSums got = split.train(train, rows);
    ASSERT_EQ(got.all().size(), want.all().size());
    for (const Sum& sum : want.all())
      EXPECT_NEAR(got.value(sum.name), want.value(sum.name),
                  2e-5 * std::max(1.0, want.value(sum.name)))
        << sum.name;
    const auto wanted = alone.plane(Plane::grad);
    for (const auto& [name, values] : split.plane(Plane::grad))
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], wanted.at(name)[i], 2e-5) << name << " " << i;
  }

  TempFolder folder_;
};

TEST_P(ContextLosses, RatiosOfWholeResponsesAreClippedLikeOnOneDevice_I1) {
  const net::Rows rows = with_column(
    with_column(context_responses(), "logprobs", -5), "advantages", -0.5F);
  TrainSpec train;
  train.fn = "ppo_actor_loss";
  train.loss.policy.kind = PolicyKind::gspo;
  train.loss.mean = LossMean::sequence;
  train.loss.entropy_coef = 0.01;
  expect_same_training(spec(false), train, rows);
}

TEST_P(ContextLosses, PreferencePairsTrainLikeOnOneDevice_I1) {
  TrainSpec train;
  train.fn = "dpo_loss";
  expect_same_training(spec(false), train, context_pairs());
}

TEST_P(ContextLosses, ARewardModelTrainsLikeOnOneDevice_I1) {
  TrainSpec train;
  train.fn = "reward_loss";
  expect_same_training(spec(true), train, context_pairs());
}

TEST_P(ContextLosses, ACriticTrainsLikeOnOneDevice_I1) {
  TrainSpec train;
  train.fn = "ppo_critic_loss";
  expect_same_training(
    spec(true), train,
    with_column(with_column(context_responses(), "values", -0.5F), "returns",
                -0.5F));
}

TEST_P(ContextLosses, PickedTokensTrainLikeOnOneDevice_I1) {
  constexpr std::uint32_t picks = 3;
  net::Rows rows = context_responses();
  std::mt19937_64 random(9);
  std::vector<std::vector<std::int32_t>> picked;
  for (const std::uint32_t length : rows.at("sequence_ids").lengths) {
    auto& own = picked.emplace_back();
    for (std::uint32_t t = 0; t < length; ++t) {
      const auto first = static_cast<std::int32_t>(random() % context_vocab);
      for (std::uint32_t k = 0; k < picks; ++k)
        own.push_back((first + static_cast<std::int32_t>(k)) % context_vocab);
    }
  }
  rows.add(column_of("teacher_ids", DType::i32, picked));
  rows.add(
    random_column("teacher_logprobs", rows.at("sequence_ids"), -3, picks));
  TrainSpec train;
  train.fn = "distillation_loss";
  train.loss.distillation_beta = 0.5;
  expect_same_training(spec(false), train, rows);
}

// A loss of a user's own, whose gradient at a token is that of all tokens of
// its sequence.
LossResult product_loss(const TrainBatch& batch, const Denominators& all,
                        const LossSettings&) {
  at::Tensor loss;
  for (std::int64_t s = 0; s < batch.num_sequences(); ++s) {
    const auto first = batch.cu_seqlens[static_cast<std::size_t>(s)];
    const auto last = batch.cu_seqlens[static_cast<std::size_t>(s) + 1];
    const at::Tensor own = at::exp(batch.logprobs_T.slice(0, first, last).sum()
                                   / (5.0 * (last - first)));
    loss = loss.defined() ? loss + own : own;
  }
  return {loss / all.sequences, {}};
}

TEST_P(ContextLosses, AUsersLossSeesWholeSequences_I1) {
  Losses table;
  LossEntry entry;
  entry.name = "product_loss";
  entry.function = product_loss;
  entry.exposes = {.logprobs = true};
  entry.metric_prefix = "actor/";
  table.add(std::move(entry));
  Engine::Spec own = spec(false);
  own.losses = &table;
  TrainSpec train;
  train.fn = "product_loss";
  expect_same_training(own, train, context_responses());
}

// Rows beside a training join its passes, with a loss of their own.
TEST_P(ContextLosses, RowsBesideATrainingTrainLikeOnOneDevice_I1) {
  const net::Rows rows = context_responses();
  const net::Rows beside = sequences_of({400, 30, 590}, context_vocab, 8);
  TrainSpec train;
  train.fn = "sft_loss";
  train.mini_batches = {rows.samples};
  train.micro_batch_tokens = 700;
  TrainRows more{train, beside};
  more.spec.fn = "ptx_loss";
  more.spec.mini_batches = {beside.samples};
  ParallelReplica alone(spec(false), "d1");
  ParallelReplica split(spec(false), GetParam());
  alone.train(train, rows, &more);
  split.train(train, rows, &more);
  const auto wanted = alone.plane(Plane::grad);
  for (const auto& [name, values] : split.plane(Plane::grad))
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], wanted.at(name)[i], 2e-5) << name << " " << i;
}

INSTANTIATE_TEST_SUITE_P(Strategies, ContextLosses,
                         ::testing::Values("c2", "c3", "c2t2", "d2c2z3",
                                           "c2p2"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

} // namespace
} // namespace troupe::models
