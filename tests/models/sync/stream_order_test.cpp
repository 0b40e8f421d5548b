// Sums of gradients and gathers of weights on streams, done as early and as
// late as streams may do them: the weights are bit for bit those of a thread
// that waits for each call.
#include "models/kernels/host_backend.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/net/host_streams.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::first_samples;
using troupe::testing::HostStreams;
using troupe::testing::ParallelReplica;
using troupe::testing::random_sequences;
using troupe::testing::ReplicaDevices;
using troupe::testing::StreamPace;
using troupe::testing::TempFolder;

struct StreamCase {
  const char* strategy;
  bool tied;
};

class StreamOrder : public ::testing::TestWithParam<StreamCase> {
protected:
  StreamOrder() {
    ModelShape shape = troupe::testing::wide_shape();
    shape.tied_embeddings = GetParam().tied;
    troupe::testing::write_random_model(folder_ / "model", shape, 1);
  }
  Engine::Spec spec() const {
    return troupe::testing::trained_actor(folder_ / "model");
  }
  /// Devices of the host whose groups have streams.
  ReplicaDevices devices(StreamPace pace) {
    return {
      .backend = [](std::uint32_t) -> Backend& { return host_backend(); },
      .join =
        [this, pace](std::shared_ptr<net::Collectives> host, std::uint32_t) {
          return std::make_shared<HostStreams>(
            std::move(host),
            HostStreams::Options{.pace = pace, .beside = &beside_});
        }};
  }
  static void train(ParallelReplica& replica) {
    const net::Rows rows = random_sequences(6, 75, 14, 2);
    TrainSpec spec;
    spec.fn = "sft_loss";
    spec.mini_batches = {first_samples(4), first_samples(6)};
    spec.micro_batch_tokens = 30;
    replica.train(spec, rows);
    replica.infer("logprobs", rows); // over weights that nobody gathered yet
  }

  TempFolder folder_;
  std::atomic<std::size_t> beside_ = 0;
};

TEST_P(StreamOrder, EarlyAndLateCallsGiveTheBitsOfCallsThatAreWaitedFor_I8) {
  const char* strategy = GetParam().strategy;
  ParallelReplica waiting(
    spec(), strategy,
    {.backend = [](std::uint32_t) -> Backend& { return host_backend(); },
     .join = [](std::shared_ptr<net::Collectives> host,
                std::uint32_t) { return host; }});
  train(waiting);
  for (const StreamPace pace : {StreamPace::early, StreamPace::late}) {
    beside_ = 0;
    ParallelReplica streaming(spec(), strategy, devices(pace));
    train(streaming);
    EXPECT_GT(beside_, 0U);
    EXPECT_TRUE(streaming.plane(Plane::weight) == waiting.plane(Plane::weight))
      << (pace == StreamPace::early ? "early" : "late");
  }
}
INSTANTIATE_TEST_SUITE_P(
  Strategies, StreamOrder,
  ::testing::Values(StreamCase{"d2", false}, StreamCase{"d2", true},
                    StreamCase{"d2z1", false}, StreamCase{"d2z1", true},
                    StreamCase{"d2t2z1", false}, StreamCase{"d2z3", false},
                    StreamCase{"d2z3", true}, StreamCase{"d2p2z3", true}),
  [](const auto& one) {
    return std::string(one.param.strategy) + (one.param.tied ? "Tied" : "");
  });

} // namespace
} // namespace troupe::models
