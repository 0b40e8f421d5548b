// `dtype: bf16`: products of bf16 operands, everything else fp32. Results are
// near fp32 (I1 at 2e-2), generation and training are near each other, and the
// bits are the same each time (I8). Heads are as wide as fused attention takes
// them, where there is one, and experts as devices dispatch tokens to.
#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"
#include "models/parallel/parameters.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include <gmock/gmock.h>

#include <cmath>
#include <string_view>

namespace troupe::models {
namespace {

using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_prompts;
using troupe::testing::random_sequences;
using troupe::testing::small_shape;
using troupe::testing::TempFolder;
using troupe::testing::write_random_model;

class Bf16 : public ::testing::TestWithParam<const char*> {
protected:
  Bf16() {
    ModelShape shape = troupe::testing::experts_shape();
    if (GetParam() == std::string_view("dense")) {
      shape = small_shape();
      shape.head_dim = 16;
    }
    write_random_model(folder_ / "model", shape, 1);
  }
  Engine::Spec spec(DType dtype) const {
    auto spec = troupe::testing::trained_actor(folder_ / "model");
    spec.dtype = dtype;
    return spec;
  }

  TempFolder folder_;
};

TEST_P(Bf16, TrainsWithin2PercentOfFp32_I1) {
  const net::Rows rows = random_sequences(9, small_shape().vocab_size, 20, 2);
  for (const char* strategy : {"d1", "t2", "d2z3"}) {
    ParallelReplica half(spec(DType::bf16), strategy);
    ParallelReplica again(spec(DType::bf16), strategy);
    TrainSpec train;
    train.fn = "sft_loss";
    train.mini_batches = {first_samples(9)};
    const MetricSums want
      = ParallelReplica(spec(DType::f32), "d1").train(train, rows);
    const MetricSums got = half.train(train, rows);
    again.train(train, rows);
    for (const char* key : {"train/loss", "train/grad_norm"}) {
      EXPECT_NEAR(got.value(key), want.value(key), 2e-2 * want.value(key))
        << strategy;
      EXPECT_NE(got.value(key), want.value(key)) << "computed in fp32?";
    }
    EXPECT_EQ(half.plane(Plane::weight), again.plane(Plane::weight)); // I8
  }
}

// Where products read rounded weights, these are never those of before.
TEST_P(Bf16, ComputesWithTheWeightsThatItSaves_I8) {
  const net::Rows rows = random_sequences(8, small_shape().vocab_size, 20, 2);
  const net::Rows prompts = random_prompts(small_shape().vocab_size);
  GenerateOptions options;
  options.max_new_tokens = 5;
  TrainSpec train;
  train.fn = "sft_loss";
  train.mini_batches = {first_samples(4), first_samples(8)};
  for (const char* strategy : {"d1", "t2", "p2", "d2z1", "d2z3"}) {
    ParallelReplica trained(spec(DType::bf16), strategy);
    const net::Rows before = trained.infer("logprobs", rows);
    trained.train(train, rows);
    Engine::Spec again = spec(DType::bf16);
    again.folder = folder_ / strategy;
    trained.run([&](Engine& engine, RunContext& context, std::uint32_t) {
      engine.save_hf(again.folder, DType::f32, context.groups);
    });
    ParallelReplica loaded(again, strategy);
    const net::Rows want = loaded.infer("logprobs", rows);
    const auto expect_the_same = [&](const char* when) {
      const net::Rows got = trained.infer("logprobs", rows);
      EXPECT_THAT(got.at("logprobs").as<float>(),
                  ::testing::ElementsAreArray(want.at("logprobs").as<float>()))
        << strategy << " " << when;
      EXPECT_THAT(
        trained.generate(prompts, options).at("logprobs").as<float>(),
        ::testing::ElementsAreArray(
          loaded.generate(prompts, options).at("logprobs").as<float>()))
        << strategy << " " << when;
    };
    EXPECT_THAT(before.at("logprobs").as<float>(),
                ::testing::Not(::testing::ElementsAreArray(
                  want.at("logprobs").as<float>())));
    expect_the_same("after training");
    trained.run([](Engine& engine, RunContext&, std::uint32_t) {
      const std::vector<Plane> planes{Plane::weight};
      engine.offload(planes);
      engine.reload(planes);
    });
    expect_the_same("after offload");
  }
}

TEST_P(Bf16, ScoresWhatItGenerates) {
  const net::Rows prompts = random_prompts(small_shape().vocab_size);
  GenerateOptions options;
  options.max_new_tokens = 12;
  options.stop_ids = {3};
  ParallelReplica replica(spec(DType::bf16), "d1");
  const net::Rows responses = replica.generate(prompts, options);
  const net::Rows scored = replica.infer("logprobs", responses);
  EXPECT_THAT(scored.at("logprobs").as<float>(),
              ::testing::Pointwise(::testing::FloatNear(2e-2F),
                                   responses.at("logprobs").as<float>()));
}

INSTANTIATE_TEST_SUITE_P(Models, Bf16, ::testing::Values("dense", "experts"),
                         [](const auto& model) { return model.param; });

} // namespace
} // namespace troupe::models
