// The engine's promises beyond golden numbers: any micro-batching and any dp
// degree give one gradient (I1), repeated runs and resumed runs give the same
// bits (I8), ranks without samples take part, bad steps are skipped alike, and
// wrong folders are named.
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/hf/safetensors.hpp"
#include "models/parallel/parameters.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;
using troupe::testing::first_samples;
using troupe::testing::random_sequences;
using troupe::testing::small_shape;
using troupe::testing::TempFolder;
using troupe::testing::write_random_model;

class EngineTest : public ::testing::Test {
protected:
  EngineTest() {
    write_random_model(folder_ / "model", small_shape(), 1);
  }
  Engine::Spec spec() const {
    return troupe::testing::compared_actor(folder_ / "model");
  }
  std::unique_ptr<Engine> engine() const {
    auto made = std::make_unique<Engine>(spec());
    made->load_weights();
    return made;
  }
  static TrainSpec sft(std::vector<std::vector<SampleId>> mini_batches) {
    TrainSpec train;
    train.fn = "sft_loss";
    train.mini_batches = std::move(mini_batches);
    return train;
  }
  TempFolder folder_;
};

std::vector<float> copy_of(Engine& engine, Plane plane) {
  const auto all = engine.parameters().read(plane);
  return {all.floats(), all.floats() + all.bytes().size() / sizeof(float)};
}

void expect_close(const std::vector<float>& a, const std::vector<float>& b,
                  double allowed) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], allowed) << "element " << i;
}

TEST_F(EngineTest, GradientIsTheSameForAnyMicroBatching) { // I1
  const net::Rows rows = random_sequences(9, 75, 20, 2);
  std::vector<std::vector<float>> gradients;
  for (const std::int64_t tokens : {0, 1, 25, 60}) {
    const auto e = engine();
    TrainSpec train = sft({first_samples(9)});
    train.micro_batch_tokens = tokens;
    RunContext context;
    e->train(train, rows, context);
    gradients.push_back(copy_of(*e, Plane::grad));
  }
  for (const auto& gradient : gradients)
    expect_close(gradient, gradients[0], 1e-5);
}

// Runs `train` on as many threads as there are parts of the samples; returns
// each rank's engine.
std::vector<std::unique_ptr<Engine>>
train_parallel(const std::function<std::unique_ptr<Engine>()>& make,
               const net::Rows& rows,
               const std::vector<std::vector<std::vector<SampleId>>>& parts,
               std::vector<MetricSums>* sums) {
  const auto size = static_cast<std::uint32_t>(parts.size());
  const auto groups = troupe::testing::thread_collectives(size);
  std::vector<std::unique_ptr<Engine>> engines(size);
  sums->resize(size);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      engines[rank] = make();
      RunContext context;
      context.groups.dp = groups[rank];
      TrainSpec train;
      train.fn = "sft_loss";
      train.mini_batches = parts[rank];
      std::vector<SampleId> own;
      for (const auto& samples : parts[rank])
        own.insert(own.end(), samples.begin(), samples.end());
      (*sums)[rank] = engines[rank]->train(
        train, own.empty() ? net::Rows{} : net::select(rows, own), context);
    });
  for (std::thread& thread : threads)
    thread.join();
  return engines;
}

TEST_F(EngineTest, WeightsAreTheSameForAnyDpDegree) { // I1
  const net::Rows rows = random_sequences(8, 75, 20, 3);
  const auto alone = engine();
  RunContext context;
  const auto all = first_samples(8);
  const auto ids = [&](std::size_t from, std::size_t to) {
    return std::vector<SampleId>(all.begin() + static_cast<long>(from),
                                 all.begin() + static_cast<long>(to));
  };
  const MetricSums want
    = alone->train(sft({ids(0, 4), ids(4, 8)}), rows, context);
  for (const std::size_t degree : {std::size_t{2}, std::size_t{4}}) {
    std::vector<std::vector<std::vector<SampleId>>> parts;
    for (std::size_t r = 0; r < degree; ++r)
      parts.push_back({ids(r * 4 / degree, (r + 1) * 4 / degree),
                       ids(4 + r * 4 / degree, 4 + (r + 1) * 4 / degree)});
    std::vector<MetricSums> sums;
    const auto engines
      = train_parallel([&] { return engine(); }, rows, parts, &sums);
    MetricSums total;
    for (const MetricSums& own : sums)
      total.merge(own);
    EXPECT_NEAR(total.value("train/loss"), want.value("train/loss"), 1e-5);
    EXPECT_NEAR(total.value("train/grad_norm"), want.value("train/grad_norm"),
                1e-4);
    EXPECT_EQ(total.value("train/tokens"), want.value("train/tokens"));
    expect_close(copy_of(*engines[0], Plane::weight),
                 copy_of(*alone, Plane::weight), 1e-5);
    for (const auto& other : engines)
      EXPECT_EQ(other->checksum(), engines[0]->checksum());
  }
}

TEST_F(EngineTest, RecomputedActivationsGiveTheSameBits) {
  const net::Rows rows = random_sequences(6, 75, 20, 12);
  TrainSpec train = sft({first_samples(6), first_samples(4)});
  train.micro_batch_tokens = 40;
  RunContext context;
  const auto keeping = engine();
  keeping->train(train, rows, context);
  train.recompute = true;
  const auto recomputing = engine();
  recomputing->train(train, rows, context);
  EXPECT_EQ(copy_of(*recomputing, Plane::grad), copy_of(*keeping, Plane::grad));
  EXPECT_EQ(recomputing->checksum(), keeping->checksum());
}

TEST_F(EngineTest, ARankWithoutSamplesTakesPart) {
  const net::Rows rows = random_sequences(3, 75, 12, 4);
  std::vector<MetricSums> sums;
  const auto engines = train_parallel([&] { return engine(); }, rows,
                                      {{first_samples(3)}, {{}}}, &sums);
  const auto alone = engine();
  RunContext context;
  alone->train(sft({first_samples(3)}), rows, context);
  EXPECT_EQ(engines[0]->checksum(), engines[1]->checksum());
  expect_close(copy_of(*engines[1], Plane::weight),
               copy_of(*alone, Plane::weight), 1e-6);
}

TEST_F(EngineTest, RepeatedRunsHaveTheSameBits) { // I8
  const net::Rows rows = random_sequences(6, 75, 20, 5);
  const auto a = engine();
  const auto b = engine();
  for (Engine* e : {a.get(), b.get()}) {
    RunContext context;
    e->train(sft({first_samples(6), first_samples(3)}), rows, context);
  }
  EXPECT_EQ(a->checksum(), b->checksum());
  EXPECT_NE(a->checksum(), engine()->checksum());
}

TEST_F(EngineTest, AResumedRunHasTheBitsOfAnUninterruptedOne) { // I8
  const net::Rows rows = random_sequences(6, 75, 20, 6);
  RunContext context;
  const auto whole = engine();
  whole->train(sft({first_samples(6), first_samples(4)}), rows, context);
  const auto first = engine();
  first->train(sft({first_samples(6)}), rows, context);
  first->save_hf(folder_ / "saved", DType::f32);
  first->save_state(folder_ / "state.safetensors");

  Engine::Spec again = spec();
  again.folder = folder_ / "saved";
  Engine second(again);
  second.load_weights();
  second.load_state(folder_ / "state.safetensors");
  EXPECT_EQ(second.checksum(), first->checksum());
  EXPECT_EQ(second.optimizer_steps(), 1U);
  second.train(sft({first_samples(4)}), rows, context);
  EXPECT_EQ(second.checksum(), whole->checksum());
}

TEST_F(EngineTest, ANonFiniteStepIsSkippedAndCounted) {
  const net::Rows rows = random_sequences(4, 75, 12, 7);
  const auto e = engine();
  const auto weights = copy_of(*e, Plane::weight);
  const auto broken = e->parameters().overwrite(Plane::weight);
  std::ranges::copy(weights, broken.floats());
  std::fill_n(broken.floats(), 75 * 40, std::numeric_limits<float>::infinity());
  broken.put_back();
  const std::uint64_t before = e->checksum();
  RunContext context;
  const MetricSums sums = e->train(sft({first_samples(4)}), rows, context);
  EXPECT_EQ(sums.value("train/skipped_steps"), 1);
  EXPECT_EQ(e->checksum(), before);
  EXPECT_EQ(e->optimizer_steps(), 1U);
  EXPECT_TRUE(std::isfinite(weights[0]));
}

TEST_F(EngineTest, AFullyMaskedMiniBatchChangesNoWeight) {
  const net::Rows rows(first_samples(1),
                       {troupe::testing::column_of<std::int32_t>(
                          "sequence_ids", DType::i32, {{1, 2, 3}}),
                        troupe::testing::column_of<std::uint8_t>(
                          "loss_mask", DType::u8, {{0, 0, 0}})});
  const auto e = engine();
  RunContext context;
  const MetricSums sums = e->train(sft({first_samples(1)}), rows, context);
  EXPECT_EQ(sums.value("train/grad_norm"), 0);
}

TEST_F(EngineTest, TheStopFlagEndsARunBetweenLayers) { // I7
  const net::Rows rows = random_sequences(4, 75, 12, 8);
  const auto e = engine();
  std::atomic<bool> stop{true};
  std::atomic<std::uint64_t> progress{0};
  RunContext context;
  context.progress = &progress;
  e->infer("logprobs", rows, context);
  EXPECT_GE(progress.load(), 2U);
  context.stop = &stop;
  EXPECT_THROW(e->infer("logprobs", rows, context), FailureError);
  EXPECT_THROW(e->train(sft({first_samples(4)}), rows, context), FailureError);
}

TEST_F(EngineTest, InferenceDoesNotDependOnMicroBatches) { // I1
  const net::Rows rows = random_sequences(7, 75, 30, 9);
  const auto e = engine();
  RunContext context;
  const net::Rows whole = e->infer("logprobs", rows, context);
  const net::Rows parts
    = e->infer("logprobs", rows, context, {.micro_batch_tokens = 17});
  EXPECT_TRUE(std::ranges::equal(whole.at("logprobs").as<float>(),
                                 parts.at("logprobs").as<float>()));
  EXPECT_FALSE(whole.has("entropy"));
}

TEST_F(EngineTest, ANewScalarHeadIsZero) {
  Engine::Spec critic = spec();
  critic.role = "critic";
  critic.scalar_head = true;
  Engine e(critic);
  e.load_weights();
  RunContext context;
  const net::Rows rows = random_sequences(2, 75, 9, 10);
  const net::Rows values = e.infer("values", rows, context);
  for (const float value : values.at("values").as<float>())
    EXPECT_EQ(value, 0.0F);
  EXPECT_THROW(e.infer("logprobs", rows, context), ConfigError);
}

// Returns the message of the ConfigError that `run` must throw.
template <class Run>
std::string config_error(const Run& run) {
  try {
    run();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST_F(EngineTest, WrongFoldersAreNamedWithTheirTensor) {
  ModelShape other = small_shape();
  other.intermediate_size = 44;
  std::ofstream(folder_ / "model/config.json") << print_hf_config(other);
  EXPECT_THAT(config_error([&] { engine(); }),
              ::testing::AllOf(HasSubstr("model.safetensors"),
                               HasSubstr("mlp.gate_proj.weight")));
  other = small_shape();
  other.num_layers = 1;
  std::ofstream(folder_ / "model/config.json") << print_hf_config(other);
  EXPECT_THAT(config_error([&] { engine(); }), HasSubstr("model.layers.1."));
  other.num_layers = 3;
  std::ofstream(folder_ / "model/config.json") << print_hf_config(other);
  EXPECT_THAT(config_error([&] { engine(); }), HasSubstr("model.layers.2."));
}

TEST_F(EngineTest, WhatThisBuildCannotRunIsAPlanError) {
  Engine::Spec wrong = spec();
  wrong.strategy = parse_strategy("t3"); // of four heads
  EXPECT_THROW(Engine{wrong}, PlanError);
  wrong = spec();
  wrong.dtype = DType::f16;
  EXPECT_THROW(Engine{wrong}, PlanError);
}

TEST_F(EngineTest, AnIdOutsideTheVocabularyIsRefused) {
  const net::Rows rows(first_samples(1),
                       {troupe::testing::column_of<std::int32_t>(
                         "sequence_ids", DType::i32, {{1, 75}})});
  RunContext context;
  EXPECT_THROW(engine()->infer("logprobs", rows, context), FailureError);
}

TEST_F(EngineTest, UnknownFunctionsAreNamed) {
  const net::Rows rows = random_sequences(1, 75, 4, 11);
  RunContext context;
  EXPECT_THAT(config_error([&] { engine()->infer("logits", rows, context); }),
              HasSubstr("logprobs, scores, top_logprobs, values"));
}

} // namespace
} // namespace troupe::models
