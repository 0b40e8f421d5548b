// Gradients are summed over the dp ranks while backward still runs, in the
// order of the calls; no test here reads a clock.
#include "models/kernels/host_backend.hpp"
#include "models/parallel/parameters.hpp"
#include "models/sync/gradient_sync.hpp"
#include "net/collectives/collectives.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_sequences;
using troupe::testing::small_shape;
using troupe::testing::TempFolder;
using troupe::testing::trained_actor;
using troupe::testing::write_random_model;

// Counts a device's sums of gradients over the dp ranks when they start.
class SumsBegun {
public:
  void one_more() {
    const std::lock_guard lock(mutex_);
    ++begun_;
    changed_.notify_all();
  }
  /// Returns true if this many sums have started, or start without any other
  /// event. A sum that never starts is waited for once.
  bool reach(std::size_t wanted) {
    std::unique_lock lock(mutex_);
    const auto patience = std::chrono::seconds(missing_ ? 0 : 20);
    missing_
      |= !changed_.wait_for(lock, patience, [&] { return begun_ >= wanted; });
    return !missing_;
  }
  std::size_t begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t begun_ = 0;
  bool missing_ = false;
};

// A group that reports which operation starts.
class WatchedCollectives final : public net::Collectives {
public:
  using Watch = std::function<void(const std::string& name)>;
  WatchedCollectives(std::shared_ptr<net::Collectives> group, Watch watch)
    : group_(std::move(group)),
      watch_(std::move(watch)) {}

  std::uint32_t rank() const noexcept override {
    return group_->rank();
  }
  std::uint32_t size() const noexcept override {
    return group_->size();
  }
  void all_reduce_sum(void* data, std::size_t count, DType dtype,
                      const char* name) override {
    watch_(name);
    group_->all_reduce_sum(data, count, dtype, name);
  }
  void all_gather(const void* mine, void* all, std::size_t count, DType dtype,
                  const char* name) override {
    watch_(name);
    group_->all_gather(mine, all, count, dtype, name);
  }
  void reduce_scatter_sum(const void* all, void* mine, std::size_t count,
                          DType dtype, const char* name) override {
    watch_(name);
    group_->reduce_scatter_sum(all, mine, count, dtype, name);
  }
  void broadcast(void* data, std::size_t count, DType dtype, std::uint32_t root,
                 const char* name) override {
    watch_(name);
    group_->broadcast(data, count, dtype, root, name);
  }
  void exchange(const net::Pieces& pieces, const char* name) override {
    watch_(name);
    group_->exchange(pieces, name);
  }
  void barrier(const char* name) override {
    watch_(name);
    group_->barrier(name);
  }
  std::optional<Failure> failure() override {
    return group_->failure();
  }
  void abort(const Failure& failure) noexcept override {
    group_->abort(failure);
  }

private:
  std::shared_ptr<net::Collectives> group_;
  Watch watch_;
};

std::shared_ptr<net::Collectives>
counting(std::shared_ptr<net::Collectives> group, SumsBegun& sums) {
  return std::make_shared<WatchedCollectives>(std::move(group),
                                              [&](const std::string& name) {
                                                if (name == "gradients")
                                                  sums.one_more();
                                              });
}

class GradientOverlap : public ::testing::TestWithParam<const char*> {
protected:
  TempFolder folder_;
};

// Each layer's backward sums over the tensor peers twice. It continues only
// when the sums of all later units have started.
TEST_P(GradientOverlap, ALayersBackwardOverlapsReductionsOfLaterLayers) {
  auto shape = small_shape();
  shape.num_layers = 4;
  write_random_model(folder_ / "model", shape, 1);
  ParallelReplica replica(trained_actor(folder_ / "model"), GetParam());
  TrainSpec train;
  train.fn = "sft_loss";
  train.micro_batches = 1;
  const auto rows = random_sequences(4, 75, 12, 2);
  replica.run([&](Engine& engine, RunContext& context, std::uint32_t dp) {
    SumsBegun sums;
    std::size_t calls = 0;
    context.groups.dp = counting(context.groups.dp, sums);
    context.groups.tp = std::make_shared<WatchedCollectives>(
      context.groups.tp, [&](const std::string& name) {
        if (name == "sum of input gradients") {
          const auto units_behind = 1 + calls++ / 2;
          EXPECT_TRUE(sums.reach(units_behind))
            << "of " << units_behind << " units behind";
        }
      });
    TrainSpec own = train;
    own.mini_batches = {{SampleId{dp}, SampleId{dp + 2}}};
    engine.train(own, net::select(rows, own.mini_batches[0]), context);
    EXPECT_EQ(calls, 8U);
    EXPECT_EQ(sums.begun(), 6U) << "embedding, four layers, head";
  });
}
INSTANTIATE_TEST_SUITE_P(Strategies, GradientOverlap,
                         ::testing::Values("d2t2", "d2t2z3"));

class GradientSums : public ::testing::TestWithParam<const char*> {};

TEST_P(GradientSums, StartWithTheUnitWhoseBackwardIsDone) {
  const auto strategy = parse_strategy(GetParam());
  net::GroupRegistry registry;
  net::GroupSpec alone;
  alone.name = "alone";
  alone.members.resize(1);
  SumsBegun sums;
  const LocalModel part(small_shape(), strategy, {});
  Parameters parameters(part, true);
  GradientSync sync(part, parameters, host_backend());
  sync.begin(
    {.dp = counting(net::make_host_collectives(alone, registry), sums)});
  sync.after_backward(2);
  EXPECT_EQ(sums.begun(), 0U) << "more micro-batches come";
  sync.last_backward();
  std::size_t done = 0;
  for (const std::int64_t layer : {2, 1, 0, -1}) {
    sync.after_backward(layer);
    EXPECT_TRUE(sums.reach(++done)) << "layer " << layer;
    EXPECT_EQ(sums.begun(), done);
  }
  sync.finish();
  EXPECT_EQ(sums.begun(), done);
}
INSTANTIATE_TEST_SUITE_P(Strategies, GradientSums,
                         ::testing::Values("d2", "d2z1"));

} // namespace
} // namespace troupe::models
