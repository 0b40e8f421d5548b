// Strategies against transformers: golden models and a golden training run, to
// the tolerances that one device has to keep (I1).
#include "models/engine/engine.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/golden.hpp"
#include "tests/support/models/parallel_support.hpp"

#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::column_of;
using troupe::testing::first_samples;
using troupe::testing::golden_folder;
using troupe::testing::GoldenTensors;
using troupe::testing::ParallelReplica;
using troupe::testing::read_golden;
using troupe::testing::read_golden_meta;
using troupe::testing::split;

struct ModelUnder {
  const char* model;
  const char* strategy;
};

class GoldenStrategy : public ::testing::TestWithParam<ModelUnder> {};

TEST_P(GoldenStrategy, InfersTheReferencesLogProbabilities) {
  TROUPE_NEEDS_GOLDEN();
  const auto folder = golden_folder() / "models" / GetParam().model;
  const GoldenTensors io = read_golden(folder / "io.safetensors");
  const auto tolerance = read_golden_meta(folder)["tolerance_abs"];
  const auto ids = split(io.at("tokens").ints(), io.at("cu_seqlens").values);
  const net::Rows rows(first_samples(ids.size()),
                       {column_of("sequence_ids", DType::i32, ids)});
  Engine::Spec spec;
  spec.backend = &troupe::testing::backend_under_test();
  spec.folder = folder;
  spec.role = GetParam().model;
  ParallelReplica replica(spec, GetParam().strategy);
  const net::Rows out = replica.infer("logprobs", rows);
  const auto logprobs = out.at("logprobs").as<float>();
  const auto& want = io.at("logprobs").values;
  std::size_t at = 0;
  std::size_t next = 0;
  for (const auto& own : ids) {
    for (std::size_t t = 1; t < own.size(); ++t)
      ASSERT_NEAR(logprobs[at + t], want[next++],
                  tolerance["logprobs"].get<double>());
    at += own.size();
  }
  EXPECT_EQ(next, want.size());
}
INSTANTIATE_TEST_SUITE_P(
  Models, GoldenStrategy,
  ::testing::Values(
    ModelUnder{"llama_gqa", "t2"}, ModelUnder{"llama_gqa", "t4"},
    ModelUnder{"llama_gqa", "p3"}, ModelUnder{"llama_gqa", "t2s"},
    ModelUnder{"llama_tied_sharded", "t4"},
    ModelUnder{"llama_tied_sharded", "p2t2"}, ModelUnder{"qwen2", "t2"},
    ModelUnder{"qwen2", "d2p2t2s"}, ModelUnder{"qwen2", "d3z3"},
    ModelUnder{"llama_tied_sharded", "d2p2z3"}),
  [](const auto& one) {
    return std::string(one.param.model) + "_" + one.param.strategy;
  });

void expect_tensors(const std::map<std::string, std::vector<float>>& got,
                    const std::filesystem::path& file, double allowed) {
  const GoldenTensors want = read_golden(file);
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want)
    for (std::size_t i = 0; i < tensor.values.size(); ++i)
      ASSERT_NEAR(got.at(name)[i], tensor.values[i], allowed)
        << name << " entry " << i;
}

class GoldenStrategyTraining : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenStrategyTraining, FollowsTheReferencesSft) {
  TROUPE_NEEDS_GOLDEN();
  const auto folder = golden_folder() / "training/sft";
  const auto meta = read_golden_meta(folder);
  const GoldenTensors data = read_golden(folder / "data.safetensors");
  const GoldenTensors want = read_golden(folder / "trajectory.safetensors");
  const auto& cu = data.at("cu_seqlens").values;
  const auto ids = split(data.at("tokens").ints(), cu);
  const net::Rows rows(first_samples(ids.size()),
                       {column_of("sequence_ids", DType::i32, ids),
                        column_of("loss_mask", DType::u8,
                                  split(data.at("loss_mask").mask(), cu))});
  const auto& cu_steps = data.at("step_cu_sequences").values;
  Engine::Spec spec;
  spec.backend = &troupe::testing::backend_under_test();
  spec.folder = folder / "init";
  spec.role = "sft";
  spec.trainable = true;
  spec.optimizer = troupe::testing::golden_optimizer(meta["spec"]["optimizer"]);
  spec.total_optimizer_steps = cu_steps.size() - 1;
  ParallelReplica replica(spec, GetParam());
  TrainSpec train;
  train.fn = "sft_loss";
  for (std::size_t s = 0; s + 1 < cu_steps.size(); ++s) {
    train.mini_batches = {{}};
    for (double i = cu_steps[s]; i < cu_steps[s + 1]; ++i)
      train.mini_batches[0].emplace_back(static_cast<std::uint64_t>(i));
    const MetricSums sums = replica.train(train, rows);
    ASSERT_NEAR(sums.value("train/loss"), want.at("loss").values[s], 1e-4);
    const double norm = want.at("grad_norm").values[s];
    ASSERT_NEAR(sums.value("train/grad_norm"), norm, 1e-3 * norm);
    if (s == 0)
      expect_tensors(replica.plane(Plane::grad),
                     folder / "grads_step0.safetensors",
                     meta["tolerance_abs"]["grads_step0"]);
  }
  expect_tensors(replica.plane(Plane::weight), folder / "final.safetensors",
                 meta["tolerance_abs"]["final"]);
}
INSTANTIATE_TEST_SUITE_P(Strategies, GoldenStrategyTraining,
                         ::testing::Values("d2", "t2", "t4", "p2", "d2t2",
                                           "d2z1", "t2s", "p2t2", "d2p2z1",
                                           "d4z3", "d2t2z3", "d2p2z3", "c2",
                                           "d2c2z1"),
                         [](const auto& one) { return one.param; });

} // namespace
} // namespace troupe::models
