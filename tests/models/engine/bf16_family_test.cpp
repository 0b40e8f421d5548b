// Every golden family with `dtype: bf16` beside fp32 (I1): an engine's
// log-probabilities and its first step of training, on any device.
#include "models/engine/engine.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/golden.hpp"
#include "tests/support/models/parallel_support.hpp"

#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_sequences;

class Bf16Family : public ::testing::TestWithParam<std::string> {
protected:
  ParallelReplica replica(DType dtype) const {
    auto spec = troupe::testing::trained_actor(troupe::testing::golden_folder()
                                               / "models" / GetParam());
    spec.dtype = dtype;
    return {spec, "d1"};
  }
};

TEST_P(Bf16Family, ScoresAndTrainsNearFp32_I1) {
  TROUPE_NEEDS_GOLDEN();
  ParallelReplica whole = replica(DType::f32);
  ParallelReplica half = replica(DType::bf16);
  const auto vocab
    = static_cast<std::int32_t>(whole.engine(0).shape().vocab_size);
  const net::Rows rows = random_sequences(6, vocab, 24, 3);
  const net::Rows want = whole.infer("logprobs", rows);
  const net::Rows got = half.infer("logprobs", rows);
  const auto exact = want.at("logprobs").as<float>();
  const auto rounded = got.at("logprobs").as<float>();
  ASSERT_EQ(rounded.size(), exact.size());
  double apart = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    apart += std::abs(rounded[i] - exact[i]);
  EXPECT_GT(apart, 0) << "computed in fp32?";
  EXPECT_LT(apart / static_cast<double>(exact.size()), 2e-2);

  TrainSpec train;
  train.fn = "sft_loss";
  train.mini_batches = {first_samples(6)};
  const MetricSums exactly = whole.train(train, rows);
  const MetricSums nearly = half.train(train, rows);
  const auto expect_near = [&](const char* key, double share) {
    EXPECT_NEAR(nearly.value(key), exactly.value(key),
                share * exactly.value(key))
      << key;
  };
  expect_near("train/loss", 2e-2);
  // The host rounds queries and keys of fp32 activations, which a sharp softmax
  // turns into more.
  const bool stores_bf16
    = troupe::testing::backend_under_test().storage(DType::bf16) == DType::bf16;
  expect_near("train/grad_norm", stores_bf16 ? 2e-2 : 0.15);
}

INSTANTIATE_TEST_SUITE_P(All, Bf16Family,
                         ::testing::ValuesIn(testing::golden_models(false)),
                         [](const auto& model) { return model.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Bf16Family);

} // namespace
} // namespace troupe::models
