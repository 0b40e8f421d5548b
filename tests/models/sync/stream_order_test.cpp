// Sums of gradients, gathers of weights and sums of tensor peers on streams,
// done as early and as late as streams may do them, and stages that send beside
// their kernels: the weights are bit for bit those of a thread that waits for
// each call.
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
    const auto join_at = [this](StreamPace its_pace) -> ReplicaDevices::Join {
      return [this, its_pace](std::shared_ptr<net::Collectives> host,
                              std::uint32_t) {
        return std::make_shared<HostStreams>(
          std::move(host), HostStreams::Options{.pace = its_pace,
                                                .beside = &beside_,
                                                .in_line = &in_line_});
      };
    };
    return {.backend = [](std::uint32_t) -> Backend& { return host_backend(); },
            .join = join_at(pace),
            .join_link = join_at(StreamPace::by_thread)};
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
  std::atomic<std::size_t> in_line_ = 0;
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
    in_line_ = 0;
    ParallelReplica streaming(spec(), strategy, devices(pace));
    train(streaming);
    const Strategy& layout = streaming.strategy();
    EXPECT_EQ(beside_ > 0, layout.dp > 1 || layout.pp > 1);
    EXPECT_EQ(in_line_ > 0,
              layout.tp > 1 || layout.pp > 1 || layout.zero == Zero::z1);
    EXPECT_TRUE(streaming.plane(Plane::weight) == waiting.plane(Plane::weight))
      << (pace == StreamPace::early ? "early" : "late");
  }
}
INSTANTIATE_TEST_SUITE_P(
  Strategies, StreamOrder,
  ::testing::Values(StreamCase{"d2", false}, StreamCase{"d2", true},
                    StreamCase{"d2z1", false}, StreamCase{"d2z1", true},
                    StreamCase{"d2t2z1", false}, StreamCase{"d2z3", false},
                    StreamCase{"d2z3", true}, StreamCase{"d2p2z3", true},
                    StreamCase{"t2", false}, StreamCase{"t2s", true},
                    StreamCase{"d2t2z3", false}, StreamCase{"p2", true},
                    StreamCase{"p4", false}, StreamCase{"p2t2", true}),
  [](const auto& one) {
    return std::string(one.param.strategy) + (one.param.tied ? "Tied" : "");
  });

} // namespace
} // namespace troupe::models
