// One model under every strategy, on threads of this process, against the same
// model on one device: log-probabilities, values, losses, gradients, optimizer
// steps, generated tokens, saved folders (I1, I2). The single device's own
// numbers are compared with transformers elsewhere (engine_train_test).
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/generate_events.hpp"
#include "models/generate/generate_options.hpp"
#include "models/generate/response_batch.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "plans/memory/memory_model.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <mutex>

namespace troupe::models {
namespace {

using troupe::testing::expect_same_responses;
using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_prompts;
using troupe::testing::random_responses;
using troupe::testing::random_sequences;
using troupe::testing::TempFolder;
using troupe::testing::wide_shape;
using troupe::testing::write_random_model;

ModelShape biased_shape() {
  ModelShape shape = wide_shape();
  shape.attention_bias = true;
  shape.output_bias = true;
  shape.mlp_bias = true;
  return shape;
}

ModelShape tied_shape() {
  ModelShape shape = wide_shape();
  shape.tied_embeddings = true;
  return shape;
}

class Parallel : public ::testing::TestWithParam<const char*> {
protected:
  Engine::Spec spec(const ModelShape& shape, bool scalar_head = false) const {
    const auto folder = folder_ / "model";
    if (!std::filesystem::exists(folder))
      write_random_model(folder, shape, 1);
    Engine::Spec spec = troupe::testing::compared_actor(folder);
    spec.scalar_head = scalar_head;
    return spec;
  }
  void expect_same_training(const ModelShape& shape) const;

  TempFolder folder_;
};

// Under strategies that do not shard weights over dp ranks.
class ParallelGeneration : public Parallel {};

void expect_close(const std::map<std::string, std::vector<float>>& got,
                  const std::map<std::string, std::vector<float>>& want,
                  double allowed) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want)
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(got.at(name)[i], values[i], allowed)
        << name << " entry " << i;
}

TrainSpec sft(const std::vector<std::vector<SampleId>>& mini_batches) {
  TrainSpec train;
  train.fn = "sft_loss";
  train.mini_batches = mini_batches;
  train.micro_batch_tokens = 40;
  return train;
}

// Compares the gradient of one step, then the weights after three.
void Parallel::expect_same_training(const ModelShape& shape) const {
  const net::Rows rows = random_sequences(9, 75, 20, 2);
  const auto all = first_samples(9);
  ParallelReplica alone(spec(shape), "d1");
  ParallelReplica split(spec(shape), GetParam());
  const MetricSums want = alone.train(sft({all}), rows);
  const MetricSums got = split.train(sft({all}), rows);
  EXPECT_NEAR(got.value("train/loss"), want.value("train/loss"), 1e-5);
  EXPECT_EQ(got.value("train/tokens"), want.value("train/tokens"));
  EXPECT_NEAR(got.value("train/grad_norm"), want.value("train/grad_norm"),
              1e-5 * want.value("train/grad_norm"));
  EXPECT_EQ(got.value("train/lr"), want.value("train/lr"));
  expect_close(split.plane(Plane::grad), alone.plane(Plane::grad), 1e-5);
  alone.train(sft({first_samples(5), all}), rows);
  split.train(sft({first_samples(5), all}), rows);
  expect_close(split.plane(Plane::weight), alone.plane(Plane::weight), 5e-5);
}

TEST_P(Parallel, TrainsLikeOneDevice_I1) {
  expect_same_training(wide_shape());
}
TEST_P(Parallel, TrainsBiasesLikeOneDevice_I1) {
  expect_same_training(biased_shape());
}
TEST_P(Parallel, TrainsTiedEmbeddingsLikeOneDevice_I1) {
  expect_same_training(tied_shape());
}

// A micro-batch of one sequence has no prompt to share: the slow reference.
TEST_P(Parallel, SharesPromptsAndTrainsLikeOneDeviceThatDoesNot_I1) {
  const net::Rows rows = random_responses(3, 4, 75, 14, 5);
  TrainSpec train = sft({first_samples(12)});
  ParallelReplica split(spec(wide_shape()), GetParam());
  split.train(train, rows);
  ParallelReplica alone(spec(wide_shape()), "d1");
  train.micro_batch_tokens = 1;
  alone.train(train, rows);
  expect_close(split.plane(Plane::grad), alone.plane(Plane::grad), 1e-5);
}

TEST_P(Parallel, RecomputesActivationsWithTheSameBits) {
  const net::Rows rows = random_sequences(6, 75, 16, 8);
  ParallelReplica keeping(spec(wide_shape()), GetParam());
  ParallelReplica recomputing(spec(wide_shape()), GetParam());
  TrainSpec train = sft({first_samples(6)});
  keeping.train(train, rows);
  train.recompute = true;
  recomputing.train(train, rows);
  EXPECT_EQ(recomputing.plane(Plane::weight), keeping.plane(Plane::weight));
}

TEST_P(Parallel, InfersTheSameLogProbabilitiesAndEntropies_I1) {
  const net::Rows rows = random_sequences(7, 75, 30, 3);
  ParallelReplica alone(spec(wide_shape()), "d1");
  ParallelReplica split(spec(wide_shape()), GetParam());
  const InferOptions options{
    .temperature = 0.7, .entropy = true, .micro_batch_tokens = 40};
  const net::Rows want = alone.infer("logprobs", rows, options);
  const net::Rows got = split.infer("logprobs", rows, options);
  for (const char* key : {"logprobs", "entropy"})
    EXPECT_THAT(got.at(key).as<float>(),
                ::testing::Pointwise(::testing::FloatNear(1e-5F),
                                     want.at(key).as<float>()))
      << key;
}

TEST_P(Parallel, TrainsAndInfersACriticLikeOneDevice_I1) {
  ModelShape shape = wide_shape();
  shape.scalar_head = true;
  const net::Rows ids = random_sequences(8, 75, 16, 4);
  const net::Rows others = random_sequences(8, 75, 16, 5);
  net::Rows pairs(ids.samples, {});
  net::Column chosen = ids.at("sequence_ids");
  chosen.key = "chosen_ids";
  net::Column rejected = others.at("sequence_ids");
  rejected.key = "rejected_ids";
  pairs.add(chosen);
  pairs.add(rejected);
  ParallelReplica alone(spec(shape, true), "d1");
  ParallelReplica split(spec(shape, true), GetParam());
  TrainSpec train;
  train.fn = "reward_loss";
  train.mini_batches = {first_samples(8), first_samples(4)};
  train.micro_batch_tokens = 40;
  const MetricSums want = alone.train(train, pairs);
  const MetricSums got = split.train(train, pairs);
  EXPECT_NEAR(got.value("train/loss"), want.value("train/loss"), 1e-5);
  EXPECT_NEAR(got.value("train/grad_norm"), want.value("train/grad_norm"),
              1e-5 * want.value("train/grad_norm"));
  expect_close(split.plane(Plane::weight), alone.plane(Plane::weight), 5e-5);
  const net::Rows values = split.infer("values", ids);
  EXPECT_THAT(
    values.at("values").as<float>(),
    ::testing::Pointwise(::testing::FloatNear(2e-5F),
                         alone.infer("values", ids).at("values").as<float>()));
}

TEST_P(ParallelGeneration, GivesTheSameTokens_I1_I2) {
  const net::Rows prompts = random_prompts(75);
  const GenerateOptions options
    = {.max_new_tokens = 12, .seed = 5, .max_sequences = 4, .stop_ids = {3}};
  ParallelReplica alone(spec(wide_shape()), "d1");
  ParallelReplica split(spec(wide_shape()), GetParam());
  const net::Rows want = alone.generate(prompts, options);
  const net::Rows got = split.generate(prompts, options);
  expect_same_responses(got, want);
}

TEST_P(ParallelGeneration, SlicesHaveTheBitsOfAWholeGeneration_I1_I2) {
  const net::Rows prompts = random_prompts(75);
  GenerateOptions options
    = {.max_new_tokens = 12, .seed = 5, .max_sequences = 4, .stop_ids = {3}};
  ParallelReplica replica(spec(wide_shape()), GetParam());
  const net::Rows whole = replica.generate(prompts, options);
  options.max_new_tokens = 5;
  const net::Rows begun = replica.generate(prompts, options);
  options.max_new_tokens = 12;
  const std::vector<std::string> so_far
    = {"sequence_ids", "logprobs", "truncated"};
  const net::Rows got = replica.generate(
    net::merge(std::vector{prompts, net::select_keys(begun, so_far)}), options);
  EXPECT_THAT(
    got.at("sequence_ids").as<std::int32_t>(),
    ::testing::ElementsAreArray(whole.at("sequence_ids").as<std::int32_t>()));
  EXPECT_THAT(got.at("logprobs").as<float>(),
              ::testing::ElementsAreArray(whole.at("logprobs").as<float>()));
}

TEST_P(ParallelGeneration, ContinuousBatchesEndAlikeOnAllDevices_I2) {
  const net::Rows prompts = random_prompts(75);
  const GenerateOptions options
    = {.max_new_tokens = 12, .seed = 5, .stop_ids = {3}};
  ParallelReplica alone(spec(wide_shape()), "d1");
  ParallelReplica split(spec(wide_shape()), GetParam());
  const auto& all = prompts.samples;
  std::vector<net::Rows> batches;
  for (const auto& [first, count] : {std::pair{0, 2}, {2, 3}, {5, 1}})
    batches.push_back(
      net::select(prompts, std::vector<SampleId>(all.begin() + first,
                                                 all.begin() + first + count)));
  std::mutex mutex;
  std::map<const Engine*, std::vector<std::size_t>> ends;
  std::map<const Engine*, std::vector<net::Rows>> responses;
  split.run([&](Engine& engine, RunContext& context, std::uint32_t) {
    std::vector<ResponseBatch> parts;
    for (const net::Rows& batch : batches)
      parts.push_back({&batch, context.step, options.max_new_tokens});
    engine.generate(parts, options, context,
                    {.on_batch = [&](std::size_t batch, net::Rows rows) {
                      const std::lock_guard lock(mutex);
                      ends[&engine].push_back(batch);
                      responses[&engine].push_back(std::move(rows));
                    }});
  });
  const net::Rows want = alone.generate(prompts, options);
  EXPECT_EQ(responses.size(), split.size());
  for (const auto& [engine, parts] : responses) {
    EXPECT_EQ(ends[engine], ends.begin()->second);
    ASSERT_EQ(parts.size(), batches.size());
    const auto got = net::select(net::concat(parts), all);
    EXPECT_THAT(
      got.at("sequence_ids").as<std::int32_t>(),
      ::testing::ElementsAreArray(want.at("sequence_ids").as<std::int32_t>()));
  }
}

TEST_P(Parallel, SavesTheFoldersThatOneDeviceSaves) {
  const net::Rows rows = random_sequences(4, 75, 12, 7);
  ParallelReplica split(spec(wide_shape()), GetParam());
  split.train(sft({first_samples(4)}), rows);
  split.run([&](Engine& engine, RunContext& context, std::uint32_t) {
    engine.save_hf(folder_ / "saved", DType::f32, context.groups);
    engine.save_state(folder_ / "state.safetensors", context.groups);
  });
  Engine::Spec again = spec(wide_shape());
  again.folder = folder_ / "saved";
  ParallelReplica one(again, "d1");
  one.engine(0).load_state(folder_ / "state.safetensors");
  EXPECT_EQ(one.plane(Plane::weight), split.plane(Plane::weight));
  EXPECT_EQ(one.engine(0).optimizer_steps(), 1U);
  // ... and back into parts, to continue with the same bits (I8)
  ParallelReplica resumed(again, GetParam());
  for (std::size_t i = 0; i < resumed.size(); ++i)
    resumed.engine(i).load_state(folder_ / "state.safetensors");
  resumed.train(sft({first_samples(3)}), rows);
  split.train(sft({first_samples(3)}), rows);
  EXPECT_EQ(resumed.plane(Plane::weight), split.plane(Plane::weight));
  one.train(sft({first_samples(3)}), rows);
  expect_close(one.plane(Plane::weight), split.plane(Plane::weight), 5e-5);
}

TEST_P(Parallel, ChecksumsOfItsShardsAddUpToTheModels) {
  ParallelReplica alone(spec(wide_shape()), "d1");
  ParallelReplica split(spec(wide_shape()), GetParam());
  const bool one_copy = plans::cuts_weights(split.strategy());
  std::vector<std::uint64_t> sums(one_copy ? 1 : split.strategy().dp);
  for (std::size_t i = 0; i < split.size(); ++i)
    sums[split.engine(i).part().where.dp % sums.size()]
      += split.engine(i).checksum();
  EXPECT_THAT(sums, ::testing::Each(alone.engine(0).checksum()));
}

// Everything that may differ between dp ranks differs: samples and
// micro-batches, and one rank has no sample. All ranks still make the same
// passes.
TEST(ShardedParameters, RanksWithFewerMicroBatchesTakePart_I1) {
  const TempFolder folder;
  write_random_model(folder / "model", wide_shape(), 1);
  const auto spec = troupe::testing::compared_actor(folder / "model");
  const net::Rows rows = random_sequences(9, 75, 20, 2);
  for (const char* strategy : {"d4z3", "d2p2z3"}) {
    ParallelReplica alone(spec, "d1");
    ParallelReplica split(spec, strategy);
    TrainSpec train = sft({first_samples(1), first_samples(9)});
    train.micro_batch_tokens = 12;
    alone.train(train, rows);
    split.train(train, rows);
    expect_close(split.plane(Plane::weight), alone.plane(Plane::weight), 5e-5);
    const net::Rows few = net::select(rows, first_samples(3));
    const InferOptions options{.micro_batch_tokens = 12};
    EXPECT_THAT(
      split.infer("logprobs", few, options).at("logprobs").as<float>(),
      ::testing::Pointwise(
        ::testing::FloatNear(1e-4F),
        alone.infer("logprobs", few, options).at("logprobs").as<float>()));
  }
}

TEST(ShardedParameters, ADeviceHoldsItsShareAndTheGatherBuffersOfItsUnits) {
  const TempFolder folder;
  ModelShape shape = wide_shape();
  shape.num_layers = 12;
  write_random_model(folder / "model", shape, 1);
  auto spec = troupe::testing::trained_actor(folder / "model");
  const auto bytes_of = [&](const char* text) {
    spec.strategy = parse_strategy(text);
    const plans::StageBytes planned
      = plans::stage_bytes(shape, spec.strategy).front();
    const std::uint64_t counted = Engine(spec).parameters().num_bytes();
    EXPECT_EQ(counted, planned.weights + planned.gradients + planned.optimizer)
      << text;
    return counted;
  };
  std::uint64_t largest_unit = 0;
  for (const plans::GatherBuffer& unit :
       LocalModel(shape, parse_strategy("d4z3"), {}).windows.units)
    largest_unit
      = std::max(largest_unit, 4 * static_cast<std::uint64_t>(unit.size));
  const std::uint64_t whole = bytes_of("d1");
  // four sharded planes, weights and gradients with two units each, and padding
  for (const std::uint64_t dp : {2, 4, 8})
    EXPECT_LT(bytes_of(("d" + std::to_string(dp) + "z3").c_str()),
              whole / dp + 4 * largest_unit + whole / 50)
      << dp;
  spec.trainable = false;
  EXPECT_LT(Engine(spec).parameters().num_bytes(),
            whole / 4 / 8 + 2 * largest_unit + whole / 50);
}

const auto strategy_name = [](const auto& test) { return test.param; };
INSTANTIATE_TEST_SUITE_P(Strategies, Parallel,
                         ::testing::Values("d2", "t2", "t4", "d2t2", "d2z1",
                                           "d3z1", "d2t2z1", "d2t4z1", "p2",
                                           "p4", "p2t2", "d2p2", "d2p2z1",
                                           "t2s", "t4s", "d2t2s", "p2t2s",
                                           "d2z3", "d5z3", "d2t2z3", "d2t4z3",
                                           "d2p2z3", "d2p4z3", "d2p2t2z3s",
                                           "c2", "c2t2", "d2c2z1", "c2p2z3"),
                         strategy_name);
INSTANTIATE_TEST_SUITE_P(Strategies, ParallelGeneration,
                         ::testing::Values("d2", "t2", "t4", "d2t2", "p2", "p4",
                                           "p2t2", "d2p2", "t2s", "t4s",
                                           "p2t2s", "d2z3", "d2p2t2z3s"),
                         strategy_name);

} // namespace
} // namespace troupe::models
