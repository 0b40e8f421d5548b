// Groups of pretended GPUs (docs/gpu_tests.md) whose calls are work of streams
// compute what one GPU does. A wait that is missing under every order of
// streams is found here: tests/gpu/orders_test.cpp finds those that some orders
// hide.
#include "models/engine/engine.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/models/pretended_gpus.hpp"
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace troupe::models {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;
using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::sequences_of;
using troupe::testing::Standin;
using troupe::testing::TempFolder;

/// Samples that make more micro-batches than a channel has messages on their
/// way; cp cuts two of them.
const std::vector<std::size_t> lengths{400, 14, 3,  9, 12, 7,
                                       390, 5,  11, 2, 8,  13};
constexpr std::int64_t micro_batch_tokens = 30;

class OneDevice : public ::testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    if (standin_.begin == nullptr)
      GTEST_SKIP() << "no GPU: not under tests/gpu/standin.sh";
    ModelShape shape = troupe::testing::wide_shape();
    shape.max_positions = 512;
    troupe::testing::write_random_model(folder_ / "model", shape, 1);
    standin_.begin(1);
  }
  ParallelReplica replica(const char* strategy) const {
    return ParallelReplica(troupe::testing::trained_actor(folder_ / "model"),
                           strategy, troupe::testing::pretended_gpus());
  }
  static net::Rows rows() {
    return sequences_of(lengths, 75, 2);
  }
  /// Returns the gradient's norm over two optimizer steps.
  double norm_of_training(const char* strategy) const {
    TrainSpec train;
    train.fn = "sft_loss";
    train.mini_batches
      = {first_samples(lengths.size()), first_samples(lengths.size())};
    train.micro_batch_tokens = micro_batch_tokens;
    return replica(strategy).train(train, rows()).value("train/grad_norm");
  }
  net::Rows scores(const char* strategy) const {
    return replica(strategy).infer("logprobs", rows(),
                                   {.micro_batch_tokens = micro_batch_tokens});
  }

private:
  const Standin standin_ = Standin::of_process();
  TempFolder folder_;
};

TEST_P(OneDevice, HasTheGradientOfGroupsOnStreams_I1) {
  const double want = norm_of_training("d1");
  EXPECT_NEAR(norm_of_training(GetParam()), want, 1e-4 * want);
}

TEST_P(OneDevice, HasTheScoresOfGroupsOnStreams_I1) {
  const net::Rows want = scores("d1");
  const net::Rows got = scores(GetParam());
  EXPECT_THAT(got.at("logprobs").as<float>(),
              Pointwise(FloatNear(1e-4F), want.at("logprobs").as<float>()));
}

INSTANTIATE_TEST_SUITE_P(Strategies, OneDevice,
                         ::testing::Values("d2", "t2", "t2s", "p2", "c2"),
                         [](const auto& one) {
                           return std::string(one.param);
                         });

} // namespace
} // namespace troupe::models
