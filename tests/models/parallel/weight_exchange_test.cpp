// Moves between hosts as their members run them, each in a thread, on memory of
// a device that faults when the host touches it: the bits of the layout.
#include "models/parallel/weight_exchange.hpp"
#include "net/base/page_block.hpp"
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"

#include <gtest/gtest.h>

#include "tests/support/net/far_pages.hpp"
#include "tests/support/net/group_threads.hpp"
#include "tests/support/plans/toy_model.hpp"
#include "tests/support/plans/written_once.hpp"

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

/// A move between two replicas, every device on a host of its own.
class Exchanged {
public:
  Exchanged(const plans::Layout& source, const plans::Layout& target)
    : target_(target),
      parts_(
        plans::by_host(plans::move_plan(source, target, cluster_), cluster_)),
      members_(plans::ends_of(parts_.between)) {
    for (const auto& shard : source.shards)
      sources_.try_emplace(shard.device, plans::fill(shard));
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
        exchange.run(group, FarPages::memory(),
                     {bytes_of(sources_, self), bytes_of(targets_, self)});
      },
      /*leave_together=*/!leaves);
  }
  void expect_target() const {
    for (const auto& shard : target_.shards)
      EXPECT_EQ(targets_.at(shard.device).numbers(), plans::fill(shard))
        << "device " << shard.device.value;
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
  plans::MoveParts parts_;
  std::vector<Rank> members_;
  std::map<Rank, ExchangedPlane> sources_;
  std::map<Rank, ExchangedPlane> targets_;
  net::GroupRegistry registry_;
};

plans::Layout layout(const Strategy& strategy, std::uint32_t first) {
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < strategy.num_devices(); ++i)
    devices.emplace_back(first + i);
  return plans::make_layout(troupe::testing::toy_model(4, 12, /*tied=*/false),
                            strategy, devices, DType::f32);
}

void expect_moved(const plans::Layout& source, const plans::Layout& target) {
  for (const std::uint64_t staging_bytes : {100, 4000, 1 << 20}) {
    Exchanged move(source, target);
    for (const auto& failure : move.run(staging_bytes))
      EXPECT_FALSE(failure) << to_string(*failure);
    move.expect_target();
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
  Exchanged move(source, target);
  for (const auto& failure : move.run(4000, /*leaves=*/1)) {
    ASSERT_TRUE(failure);
    EXPECT_NE(failure->code, Errc::deadline) << to_string(*failure);
  }
}

} // namespace
} // namespace troupe::models
