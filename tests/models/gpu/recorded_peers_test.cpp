// Decode passes of tensor peers as graphs that hold their sums: over a device
// of the CPU, whose captures call the captured kernels again, and a group whose
// calls are in the order of these.
#include "models/gpu/aten_backend.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/models/replaying_recorder.hpp"
#include "tests/support/net/host_streams.hpp"
#include <gmock/gmock.h>

#include <atomic>
#include <deque>
#include <functional>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;
using troupe::testing::first_samples;
using troupe::testing::HostStreams;
using troupe::testing::ParallelReplica;
using troupe::testing::prompt_rows;
using troupe::testing::random_sequences;
using troupe::testing::ReplayingRecorder;
using troupe::testing::ReplicaDevices;

/// Refuses all captures.
class NoRecorder final : public GraphRecorder {
public:
  static std::unique_ptr<GraphRecorder> make(at::Device /*device*/) {
    return std::make_unique<NoRecorder>();
  }
  std::unique_ptr<GraphCapture>
  record(const std::function<void()>& /*kernels*/) override {
    return nullptr;
  }
};

class RecordedPeers : public ::testing::Test {
protected:
  void SetUp() override {
    troupe::testing::write_random_model(folder_ / "model",
                                        troupe::testing::wide_shape(), 1);
  }
  Engine::Spec spec() const {
    return troupe::testing::trained_actor(folder_ / "model");
  }
  /// Returns devices that capture and groups that can be captured. The device
  /// of `refuses` refuses to capture.
  ReplicaDevices capturing(std::uint32_t refuses = no_device) {
    const std::size_t first = backends_.size();
    for (std::uint32_t i = 0; i < most_devices; ++i)
      backends_.emplace_back(
        at::kCPU,
        AtenOptions{.new_recorder = i == refuses ? &NoRecorder::make
                                                 : &ReplayingRecorder::make,
                    .own_kernels = true});
    return {
      .backend = [this, first](std::uint32_t i) -> Backend& {
        return backends_[first + i];
      },
      .join =
        [this](std::shared_ptr<net::Collectives> host, std::uint32_t device) {
          return std::make_shared<HostStreams>(
            std::move(host),
            HostStreams::Options{
              .on_launch = [this, device](int launch, net::Collectives& group) {
                ++launches_;
                if (on_launch_)
                  on_launch_(device, launch, group);
              }});
        }};
  }
  /// Returns devices that do not, over the host's groups.
  ReplicaDevices plain() {
    const std::size_t first = backends_.size();
    for (std::uint32_t i = 0; i < most_devices; ++i)
      backends_.emplace_back(at::kCPU, AtenOptions{.own_kernels = true});
    return {.backend = [this, first](std::uint32_t i) -> Backend& {
              return backends_[first + i];
            },
            .join = [](std::shared_ptr<net::Collectives> host,
                       std::uint32_t /*device*/) { return host; }};
  }
  static GenerateOptions options() {
    GenerateOptions made;
    made.max_new_tokens = 12;
    made.seed = 5;
    made.max_sequences = 4;
    return made;
  }
  static net::Rows generate(ParallelReplica& replica) {
    return replica.generate(
      prompt_rows({{5, 6, 7}, {9}, {3, 4, 5}, {8, 8}, {4}}), options());
  }

  std::function<void(std::uint32_t device, int launch, net::Collectives& group)>
    on_launch_;
  std::atomic<int> launches_ = 0; ///< of graphs, of all ranks

private:
  static constexpr std::uint32_t most_devices = 4;
  static constexpr std::uint32_t no_device = most_devices;

  std::deque<AtenBackend> backends_;
  testing::TempFolder folder_;
};

TEST_F(RecordedPeers, HaveTheTokensOfSingleLaunches_I1) {
  for (const char* strategy : {"t2", "t4", "d2t2"}) {
    SCOPED_TRACE(strategy);
    const int before = launches_;
    ParallelReplica captured(spec(), strategy, capturing());
    ParallelReplica single(spec(), strategy, plain());
    troupe::testing::expect_same_responses(generate(captured),
                                           generate(single));
    EXPECT_GT(launches_ - before, 12);
  }
}

TEST_F(RecordedPeers, HaveTheTokensOfNewWeights_I1) {
  ParallelReplica captured(spec(), "t2", capturing());
  ParallelReplica single(spec(), "t2", plain());
  TrainSpec step;
  step.fn = "sft_loss";
  step.mini_batches = {first_samples(4)};
  step.micro_batch_tokens = 30;
  const net::Rows rows = random_sequences(4, 75, 14, 2);
  for (int version = 0; version < 2; ++version) {
    const int before = launches_;
    troupe::testing::expect_same_responses(generate(captured),
                                           generate(single));
    EXPECT_GT(launches_, before);
    captured.train(step, rows);
    single.train(step, rows);
  }
}

TEST_F(RecordedPeers, OfWhichOneRefusesToCaptureLaunchAllKernels_I1) {
  ParallelReplica captured(spec(), "t2", capturing(/*refuses=*/1));
  ParallelReplica single(spec(), "t2", plain());
  troupe::testing::expect_same_responses(generate(captured), generate(single));
  EXPECT_EQ(launches_, 0) << "graphs of one capture, or none";
}

TEST_F(RecordedPeers, OneThatFailsInAReplayEndsTheOtherWithItsCause_I7) {
  const Failure cause{Errc::io, "device 1", "fell off the bus", ""};
  on_launch_ = [&](std::uint32_t device, int launch, net::Collectives& group) {
    if (device == 0 || launch < 3)
      return;
    group.abort(cause);
    throw FailureError{cause};
  };
  ParallelReplica replica(spec(), "t2", capturing());
  std::atomic<int> ended = 0;
  replica.run([&](Engine& engine, RunContext& context, std::uint32_t) {
    try {
      engine.generate(prompt_rows({{5}, {9}}), options(), context);
    } catch (const FailureError& error) {
      EXPECT_THAT(to_string(error.failure()), HasSubstr(cause.what));
      ++ended;
    }
  });
  EXPECT_EQ(ended, 2);
  EXPECT_GE(launches_, 2 * 3 - 1);
}

} // namespace
} // namespace troupe::models
