// Waits of the host in a step of training and of scoring on pretended GPUs
// (docs/gpu_tests.md): calls of CUDA that block, and meetings with other hosts.
// Sums of tensor peers and messages between stages are work of streams, so no
// layer adds to either.
#include "models/engine/engine.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/models/pretended_gpus.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace troupe::models {
namespace {

using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_sequences;
using troupe::testing::Standin;
using troupe::testing::TempFolder;

/// A group of hosts that counts its calls, in each of which members meet.
class CountedMeetings final : public net::Collectives {
public:
  CountedMeetings(std::shared_ptr<net::Collectives> host,
                  std::atomic<long>& meetings)
    : host_(std::move(host)),
      meetings_(meetings) {}

  std::uint32_t rank() const noexcept override {
    return host_->rank();
  }
  std::uint32_t size() const noexcept override {
    return host_->size();
  }
  void all_reduce_sum(void* data, std::size_t count, DType dtype,
                      const char* name) override {
    ++meetings_;
    host_->all_reduce_sum(data, count, dtype, name);
  }
  void all_gather(const void* mine, void* all, std::size_t count, DType dtype,
                  const char* name) override {
    ++meetings_;
    host_->all_gather(mine, all, count, dtype, name);
  }
  void reduce_scatter_sum(const void* all, void* mine, std::size_t count,
                          DType dtype, const char* name) override {
    ++meetings_;
    host_->reduce_scatter_sum(all, mine, count, dtype, name);
  }
  void broadcast(void* data, std::size_t count, DType dtype, std::uint32_t root,
                 const char* name) override {
    ++meetings_;
    host_->broadcast(data, count, dtype, root, name);
  }
  void exchange(const net::Pieces& pieces, const char* name) override {
    ++meetings_;
    host_->exchange(pieces, name);
  }
  void barrier(const char* name) override {
    ++meetings_;
    host_->barrier(name);
  }
  std::optional<Failure> failure() override {
    return host_->failure();
  }
  void abort(const Failure& failure) noexcept override {
    host_->abort(failure);
  }

private:
  std::shared_ptr<net::Collectives> host_;
  std::atomic<long>& meetings_;
};

/// Waits of both devices of a replica.
struct Waits {
  long calls = 0; ///< of CUDA
  long meetings = 0;

  bool operator==(const Waits&) const = default;
  std::string words() const {
    return std::to_string(calls) + " blocking calls, "
           + std::to_string(meetings) + " meetings";
  }
};

class HostWaits : public ::testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    if (standin_.begin == nullptr)
      GTEST_SKIP() << "no GPU: not under tests/gpu/standin.sh";
  }
  using Work = void (*)(ParallelReplica&);
  /// Returns the waits of the work when it is done once more by a model of so
  /// many layers.
  Waits of(std::int64_t layers, Work work) {
    ModelShape shape = troupe::testing::wide_shape();
    shape.num_layers = layers;
    const TempFolder folder;
    troupe::testing::write_random_model(folder / "model", shape, 1);
    std::atomic<long> meetings = 0;
    ParallelReplica replica(
      troupe::testing::trained_actor(folder / "model"), GetParam(),
      troupe::testing::pretended_gpus(
        net::NcclLibrary::machine(),
        [&](std::shared_ptr<net::Collectives> host)
          -> std::shared_ptr<net::Collectives> {
          return std::make_shared<CountedMeetings>(std::move(host), meetings);
        }));
    work(replica); // joins groups and allocates
    const Waits before{standin_.waits(nullptr), meetings};
    work(replica);
    return {standin_.waits(nullptr) - before.calls, meetings - before.meetings};
  }
  void expect_no_more_with_layers(Work work) {
    const Waits few = of(2, work);
    const Waits many = of(6, work);
    EXPECT_GT(few.calls, 0) << "the host reads something of every step";
    EXPECT_EQ(many, few) << "2 layers: " << few.words()
                         << "; 6 layers: " << many.words();
  }

  const Standin standin_ = Standin::of_process();
};

TEST_P(HostWaits, OfAStepOfTrainingAreNotThoseOfItsLayers) {
  expect_no_more_with_layers([](ParallelReplica& replica) {
    TrainSpec train;
    train.fn = "sft_loss";
    train.mini_batches = {first_samples(4)};
    train.micro_batch_tokens = 30;
    replica.train(train, random_sequences(4, 75, 14, 2));
  });
}

TEST_P(HostWaits, OfScoringAreNotThoseOfItsLayers) {
  expect_no_more_with_layers([](ParallelReplica& replica) {
    replica.infer("logprobs", random_sequences(4, 75, 14, 2),
                  {.micro_batch_tokens = 30});
  });
}

INSTANTIATE_TEST_SUITE_P(Strategies, HostWaits,
                         ::testing::Values("t2", "t2s", "p2", "c2"),
                         [](const auto& one) {
                           return std::string(one.param);
                         });

} // namespace
} // namespace troupe::models
