// Moves between hosts as their members run them, each in a thread, on memory of
// a device that faults when the host touches it: the bits of the layout.
#include "models/parallel/weight_exchange.hpp"
#include "net/base/page_block.hpp"
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"
#include "plans/weights/rounded_moves.hpp"

#include <gtest/gtest.h>

#include "tests/support/net/far_pages.hpp"
#include "tests/support/net/group_threads.hpp"
#include "tests/support/plans/rounded_words.hpp"
#include "tests/support/plans/toy_model.hpp"

#include <atomic>
#include <map>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::FarPages;
using PlaneWords = std::vector<std::uint32_t>;

struct ExchangedPlane {
  explicit ExchangedPlane(const PlaneWords& numbers)
    : block(numbers.size() * sizeof numbers[0], FarPages::memory()) {
    FarPages::memory().write(numbers.data(), block.data(), block.size_bytes());
  }
  PlaneWords numbers() const {
    PlaneWords found(block.size_bytes() / sizeof(std::uint32_t));
    FarPages::memory().read(block.data(), found.data(), block.size_bytes());
    return found;
  }
  std::span<std::byte> bytes() const {
    return {block.data(), block.size_bytes()};
  }
  net::PageBlock block;
};

/// Copies rows of numbers of the device from fp32 to bf16 or back, as
/// RowKernels::copy_box does.
void copy_far_numbers(const BoxCopy& box, ConstTypedPtr from, TypedPtr to) {
  const auto bytes = [&](DType type) {
    return static_cast<std::size_t>(box.sizes[3])
           * static_cast<std::size_t>(size_bytes(type));
  };
  std::vector<std::byte> read(bytes(from.type()));
  std::vector<std::byte> written(bytes(to.type()));
  for (std::int64_t row = 0; row < box.sizes[2]; ++row) {
    FarPages::memory().read((from + row * box.from_strides[2]).data(),
                            read.data(), read.size());
    const bool rounds = to.type() == DType::bf16;
    (rounds ? plans::round_runs : plans::widen_runs)(
      {.bytes = bytes(DType::f32)}, read.data(), written.data());
    FarPages::memory().write(
      written.data(), (to + row * box.to_strides[2]).data(), written.size());
  }
}

/// A move between two replicas, every device on a host of its own.
class Exchanged {
public:
  /// `rounded`: of each parameter, whether it is bf16 on its way.
  Exchanged(const plans::Layout& source, const plans::Layout& target,
            const std::vector<bool>& rounded)
    : target_(target),
      rounded_(rounded),
      parts_(plans::by_host(plans::move_plan(source, target, cluster_, rounded),
                            cluster_)),
      members_(plans::ends_of(parts_.between)) {
    for (const auto& shard : source.shards)
      sources_.try_emplace(shard.device, plans::fill_numbers(shard));
    for (const auto& shard : target.shards)
      targets_.try_emplace(shard.device, PlaneWords(shard.size_bytes / 4, 0));
    for (const auto& transfer : parts_.within) {
      const ByteRuns runs = transfer;
      FarPages::memory().copy(sources_.at(transfer.from).bytes().data(),
                              targets_.at(transfer.to).bytes().data(),
                              {&runs, 1});
    }
  }

  /// Returns the failures of members; `leaves` ends one in their place.
  std::vector<std::optional<Failure>>
  run(std::uint64_t staging_bytes, std::optional<std::uint32_t> leaves = {}) {
    return troupe::testing::run_group(
      static_cast<std::uint32_t>(members_.size()),
      [&](std::uint32_t rank) { return join(rank); },
      [&](net::Collectives& group) {
        if (group.rank() == leaves)
          throw FailureError{{Errc::io, "rank", "had an accident", ""}};
        const Rank self = members_[group.rank()];
        const WeightExchange exchange(
          plans::move_rounds(parts_.between, members_, self, staging_bytes));
        received_bytes_ += exchange.received_bytes();
        exchange.run(group, FarPages::memory(),
                     {bytes_of(sources_, self), bytes_of(targets_, self)},
                     copy_far_numbers);
      },
      /*leave_together=*/!leaves);
  }
  /// Expects the bits of what kernels read.
  void expect_target() const {
    for (const auto& shard : target_.shards)
      EXPECT_EQ(
        plans::as_read(shard, targets_.at(shard.device).numbers(), rounded_),
        plans::as_read(shard, plans::fill_numbers(shard), rounded_))
        << "device " << shard.device.value;
  }
  std::uint64_t received_bytes() const {
    return received_bytes_;
  }

private:
  std::shared_ptr<net::Collectives> join(std::uint32_t rank) {
    net::GroupSpec spec;
    spec.name = "move" + std::to_string(members_.size());
    spec.index = rank;
    spec.members.resize(members_.size());
    return net::make_staged_collectives(
      net::make_host_collectives(spec, registry_), FarPages::memory());
  }
  static std::span<std::byte>
  bytes_of(const std::map<Rank, ExchangedPlane>& planes, Rank device) {
    const auto found = planes.find(device);
    return found == planes.end() ? std::span<std::byte>()
                                 : found->second.bytes();
  }

  const plans::Cluster cluster_{.nodes = 8};
  const plans::Layout& target_;
  const std::vector<bool>& rounded_;
  plans::MoveParts parts_;
  std::vector<Rank> members_;
  std::map<Rank, ExchangedPlane> sources_;
  std::map<Rank, ExchangedPlane> targets_;
  std::atomic<std::uint64_t> received_bytes_ = 0;
  net::GroupRegistry registry_;
};

std::vector<ParameterShape> exchanged_model() {
  return troupe::testing::toy_model(4, 12, /*tied=*/false);
}
/// Returns that no parameter is rounded.
std::vector<bool> exact_numbers() {
  return std::vector<bool>(exchanged_model().size(), false);
}

plans::Layout layout(const Strategy& strategy, std::uint32_t first) {
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < strategy.num_devices(); ++i)
    devices.emplace_back(first + i);
  return plans::make_layout(exchanged_model(), strategy, devices, DType::f32);
}

/// Returns the bytes that were received.
std::uint64_t move_between(const plans::Layout& source,
                           const plans::Layout& target,
                           std::uint64_t staging_bytes,
                           const std::vector<bool>& rounded) {
  Exchanged move(source, target, rounded);
  for (const auto& failure : move.run(staging_bytes))
    EXPECT_FALSE(failure) << to_string(*failure);
  move.expect_target();
  return move.received_bytes();
}

/// Moves fp32, and bf16 of all that products read, in half the bytes.
void expect_moved(const plans::Layout& source, const plans::Layout& target) {
  const auto rounded = plans::read_rounded(exchanged_model());
  for (const std::uint64_t staging_bytes : {100, 4000, 1 << 20}) {
    const auto whole
      = move_between(source, target, staging_bytes, exact_numbers());
    const auto half = move_between(source, target, staging_bytes, rounded);
    EXPECT_NEAR(static_cast<double>(half) / static_cast<double>(whole), 0.5,
                0.03);
  }
}

TEST(WeightExchange, BringsTensorHalvesToStages_I1) {
  expect_moved(layout({.tp = 2}, 0), layout({.pp = 2}, 2));
}
TEST(WeightExchange, BringsSharedParametersToTensorHalves_I1) {
  expect_moved(layout({.dp = 2, .zero = Zero::z3}, 0), layout({.tp = 2}, 2));
}
TEST(WeightExchange, BringsStagesToReplicas_I1) {
  expect_moved(layout({.pp = 2}, 0), layout({.dp = 3}, 2));
}
TEST(WeightExchange, IsOfDevicesThatSendAndReceive_I1) {
  expect_moved(layout({.tp = 3}, 0), layout({.pp = 3}, 1));
}

TEST(WeightExchange, AMemberThatLeavesEndsItWithItsCause_I7) {
  const auto source = layout({.tp = 2}, 0);
  const auto target = layout({.pp = 2}, 2);
  const auto exact = exact_numbers();
  Exchanged move(source, target, exact);
  for (const auto& failure : move.run(4000, /*leaves=*/1)) {
    ASSERT_TRUE(failure);
    EXPECT_NE(failure->code, Errc::deadline) << to_string(*failure);
  }
}

} // namespace
} // namespace troupe::models
