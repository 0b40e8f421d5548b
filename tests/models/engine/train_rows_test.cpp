// Rows that a training call has beside its samples: one optimizer step over
// both has the gradient of the sum of their losses, against transformers' one
// and, under every strategy, against one device (I1).
#include "models/engine/train_rows.hpp"
#include "models/parallel/parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/golden.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"

#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::column_of;
using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_sequences;
using troupe::testing::read_golden;
using troupe::testing::split;

using Bytes = std::vector<std::uint8_t>;

/// The rows of a GRPO case, each token of a response with its sample's
/// advantage.
net::Rows policy_rows(const std::filesystem::path& grpo) {
  const auto data = read_golden(grpo / "data.safetensors");
  const auto ids
    = split(data.at("tokens").ints(), data.at("cu_seqlens").values);
  const auto old = split(data.at("old_logprobs").floats(),
                         data.at("response_cu_seqlens").values);
  std::vector<Bytes> masks;
  std::vector<std::vector<float>> logprobs, advantages;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto prompt
      = static_cast<std::size_t>(data.at("prompt_lengths").values[i]);
    auto& mask = masks.emplace_back(ids[i].size(), 0);
    auto& own = logprobs.emplace_back(ids[i].size(), 0.0F);
    auto& advantage = advantages.emplace_back(ids[i].size(), 0.0F);
    for (std::size_t t = prompt; t < ids[i].size(); ++t) {
      mask[t] = 1;
      own[t] = old[i][t - prompt];
      advantage[t] = static_cast<float>(data.at("advantages").values[i]);
    }
  }
  return {first_samples(ids.size()),
          {column_of("sequence_ids", DType::i32, ids),
           column_of("loss_mask", DType::u8, masks),
           column_of("logprobs", DType::f32, logprobs),
           column_of("advantages", DType::f32, advantages)}};
}

/// The first texts of an SFT case, without a mask.
net::Rows texts(const std::filesystem::path& sft, std::size_t count) {
  const auto data = read_golden(sft / "data.safetensors");
  auto ids = split(data.at("tokens").ints(), data.at("cu_seqlens").values);
  ids.resize(count);
  return {first_samples(count), {column_of("sequence_ids", DType::i32, ids)}};
}

TrainRows ptx_of(net::Rows rows, double coef, int micro_batches) {
  TrainRows ptx;
  ptx.spec.fn = "ptx_loss";
  ptx.spec.mini_batches = {rows.samples};
  ptx.spec.micro_batches = micro_batches;
  ptx.spec.loss.policy.ptx_coef = coef;
  ptx.rows = std::move(rows);
  return ptx;
}

void expect_gradients(Engine& engine, const nlohmann::json& gradients,
                      double tolerance) {
  const Parameters& parameters = engine.parameters();
  ASSERT_EQ(gradients.size(), parameters.shapes().size());
  const auto plane = parameters.read(Plane::grad);
  for (std::size_t p = 0; p < parameters.shapes().size(); ++p) {
    const auto& shape = parameters.shapes()[p];
    const float* g = plane.floats() + parameters.offset(p);
    double squares = 0, dot = 0;
    for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
      squares += double{g[i]} * g[i];
      dot += g[i] * std::cos(0.37 * static_cast<double>(i));
    }
    EXPECT_NEAR(std::sqrt(squares), gradients.at(shape.name)[0], tolerance)
      << shape.name;
    EXPECT_NEAR(dot, gradients.at(shape.name)[1], tolerance) << shape.name;
  }
}

class GoldenPtx : public ::testing::TestWithParam<int> {};

TEST_P(GoldenPtx, GradientIsThatOfBothLossesForAnyMicroBatching) {
  TROUPE_NEEDS_GOLDEN();
  const auto folder
    = troupe::testing::golden_case_folder("training/ptx").parent_path();
  const auto meta = troupe::testing::read_golden_meta(folder / "ptx");
  const auto grpo = troupe::testing::read_golden_meta(folder / "grpo");
  const auto want
    = nlohmann::json::parse(testing::read_text(folder / "ptx/case.json"));
  Engine::Spec made;
  made.backend = &troupe::testing::backend_under_test();
  made.folder = folder / "grpo/actor";
  made.role = "actor";
  made.trainable = true;
  made.optimizer.clip = 0;
  made.total_optimizer_steps = 1;
  Engine engine(made);
  engine.load_weights();
  TrainSpec spec;
  spec.fn = "ppo_actor_loss";
  spec.mini_batches = {first_samples(12)};
  spec.micro_batches = GetParam();
  spec.loss.clip.low = grpo["spec"]["clip_low"];
  spec.loss.clip.high = grpo["spec"]["clip_high"];
  const auto beside
    = ptx_of(texts(folder / "sft", meta["rows"]), meta["coef"], GetParam());
  RunContext context;
  const auto sums
    = engine.train(spec, policy_rows(folder / "grpo"), context, &beside);
  const double tolerance = meta["tolerance_abs"];
  EXPECT_NEAR(sums.value("actor/pg_loss"), want["pg_loss"], tolerance);
  EXPECT_NEAR(sums.value("actor/ptx_loss"), want["ptx_loss"], tolerance);
  expect_gradients(engine, want["gradients"], tolerance);
}
INSTANTIATE_TEST_SUITE_P(MicroBatches, GoldenPtx, ::testing::Values(1, 3));

class TrainRowsBeside : public ::testing::TestWithParam<const char*> {
protected:
  /// Trains two steps: nine samples, then five, with seven and two beside.
  MetricSums trained(ParallelReplica& replica) const {
    TrainSpec spec;
    spec.fn = "sft_loss";
    spec.mini_batches = {first_samples(9), first_samples(5)};
    spec.micro_batch_tokens = 40;
    auto beside = ptx_of(random_sequences(7, 75, 16, 4), 0.6, 0);
    beside.spec.micro_batch_tokens = 30;
    beside.spec.mini_batches = {first_samples(7), first_samples(2)};
    return replica.train(spec, random_sequences(9, 75, 20, 2), &beside);
  }
  Engine::Spec spec() const {
    const auto folder = folder_ / "model";
    if (!std::filesystem::exists(folder))
      troupe::testing::write_random_model(folder, testing::wide_shape(), 1);
    return troupe::testing::compared_actor(folder);
  }

  troupe::testing::TempFolder folder_;
};

TEST_P(TrainRowsBeside, TrainLikeOneDevice_I1) {
  ParallelReplica alone(spec(), "d1");
  ParallelReplica split(spec(), GetParam());
  const auto want = trained(alone);
  const auto got = trained(split);
  for (const char* name : {"train/loss", "actor/ptx_loss", "train/grad_norm"})
    EXPECT_NEAR(got.value(name), want.value(name), 2e-5) << name;
  EXPECT_EQ(got.value("actor/ptx_tokens"), want.value("actor/ptx_tokens"));
  const auto weights = alone.plane(Plane::weight);
  for (const auto& [name, values] : split.plane(Plane::weight))
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], weights.at(name)[i], 5e-5) << name;
}

TEST_P(TrainRowsBeside, AStepMayHaveNoSamplesOfItsOwn) {
  ParallelReplica replica(spec(), GetParam());
  TrainSpec empty;
  empty.fn = "sft_loss";
  empty.mini_batches = {{}};
  const auto beside = ptx_of(random_sequences(7, 75, 16, 4), 1, 0);
  const auto sums = replica.train(empty, {}, &beside);
  TrainSpec as_own = beside.spec;
  as_own.fn = "sft_loss";
  ParallelReplica other(spec(), GetParam());
  const auto want = other.train(as_own, beside.rows);
  EXPECT_NEAR(sums.value("actor/ptx_loss"), want.value("train/loss"), 1e-6);
  EXPECT_EQ(replica.plane(Plane::weight), other.plane(Plane::weight));
}
INSTANTIATE_TEST_SUITE_P(Strategies, TrainRowsBeside,
                         ::testing::Values("d3", "p2", "t2", "d2z3", "d2p2"));

} // namespace
} // namespace troupe::models
