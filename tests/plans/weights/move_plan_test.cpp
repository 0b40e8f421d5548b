#include "config/base/error.hpp"
#include "plans/weights/device_order.hpp"
#include "plans/weights/move_plan.hpp"

#include "tests/support/plans/random_layout.hpp"
#include "tests/support/plans/support.hpp"
#include "tests/support/plans/toy_model.hpp"
#include "tests/support/plans/written_once.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>

using ::testing::ElementsAre;
using ::testing::SizeIs;

namespace troupe::plans {
namespace {

using Random = std::mt19937_64;
using troupe::testing::toy_model;

Layout dp_layout(const std::vector<ParameterShape>& model, std::uint32_t first,
                 std::uint32_t last) {
  const auto devices = ranks(first, last);
  return make_layout(model, {.dp = last - first + 1}, devices, DType::f32);
}

TEST(Layout, DataParallelRanksOwnEverythingInOrder) {
  const auto model = toy_model(2, 8, false);
  const auto layout = dp_layout(model, 0, 1);
  ASSERT_THAT(layout.shards, SizeIs(2));
  EXPECT_EQ(layout.shards[0].boxes, layout.shards[1].boxes);
  const auto& boxes = layout.shards[0].boxes;
  ASSERT_EQ(boxes.size(), model.size());
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < boxes.size(); ++i) {
    EXPECT_EQ(boxes[i].parameter, i);
    EXPECT_EQ(boxes[i].num_elements(), model[i].num_elements());
    EXPECT_EQ(boxes[i].offset_bytes, (at + 63) / 64 * 64);
    at = boxes[i].offset_bytes + std::uint64_t(boxes[i].num_elements()) * 4;
  }
  EXPECT_EQ(layout.shards[0].size_bytes, (at + 63) / 64 * 64);
}

TEST(Layout, TiedEmbeddingsAreOnTheFirstAndTheLastStage) {
  const auto model = toy_model(4, 8, true);
  const auto devices = ranks(0, 1);
  const auto layout = make_layout(model, {.pp = 2}, devices, DType::f32);
  EXPECT_EQ(layout.shards[0].boxes.front().parameter, 0u);
  EXPECT_EQ(layout.shards[1].boxes.front().parameter, 0u);
  const auto untied
    = make_layout(toy_model(4, 8, false), {.pp = 2}, devices, DType::f32);
  EXPECT_NE(untied.shards[1].boxes.front().parameter, 0u);
}

TEST(Layout, ZeroOneShardsOnlyTheOptimizer) {
  const auto model = toy_model(2, 8, false);
  const auto devices = ranks(0, 3);
  const Strategy z1{.dp = 4, .zero = Zero::z1};
  const auto weights = make_layout(model, z1, devices, DType::f32);
  const auto planes
    = make_layout(model, z1, devices, DType::f32, LayoutKind::optimizer);
  EXPECT_EQ(weights.shards[0].size_bytes, weights.shards[3].size_bytes);
  EXPECT_LT(planes.shards[0].size_bytes, weights.shards[0].size_bytes / 3);
}

TEST(Layout, AFlatShardIsAtMostThreeBoxesPerParameter) {
  const auto model = toy_model(3, 7, false);
  const auto devices = ranks(0, 4);
  const auto layout
    = make_layout(model, {.dp = 5, .zero = Zero::z3}, devices, DType::f32);
  for (const auto& shard : layout.shards) {
    std::map<std::uint32_t, int> count;
    for (const auto& box : shard.boxes)
      EXPECT_LE(++count[box.parameter], 3);
  }
}

TEST(Layout, TheNumberOfDevicesMustFitTheStrategy) {
  const auto devices = ranks(0, 2);
  EXPECT_THROW(
    make_layout(toy_model(1, 8, true), {.dp = 2}, devices, DType::f32),
    InvariantError);
}

TEST(MovePlan, EqualLayoutsMoveInOneRunPerDevice) {
  const auto model = toy_model(4, 8, false);
  const auto source = dp_layout(model, 0, 1);
  const auto target = dp_layout(model, 2, 3);
  const Cluster cluster{.devices_per_node = 4, .workers_per_node = 2};
  const auto plan = move_plan(source, target, cluster);
  ASSERT_THAT(plan, SizeIs(2)) << "joined over the padding";
  EXPECT_NE(plan[0].from, plan[1].from) << "both peers send";
  for (const auto& transfer : plan)
    EXPECT_EQ(transfer.source_offset, 0u);
}

TEST(MovePlan, SendersAreTheNearestOwners) {
  const auto model = toy_model(1, 8, false);
  // Two nodes of four devices, two workers each: workers {0,1} {2,3} {4,5} ...
  const Cluster cluster{
    .nodes = 2, .devices_per_node = 4, .workers_per_node = 2};
  const auto sender = [&](std::vector<Rank> owners, Rank to) {
    const auto size = static_cast<std::uint32_t>(owners.size());
    const auto source = make_layout(model, {.dp = size}, owners, DType::f32);
    const std::vector<Rank> target = {to};
    const auto plan
      = move_plan(source, make_layout(model, {}, target, DType::f32), cluster);
    EXPECT_THAT(plan, SizeIs(1));
    return plan.front().from;
  };
  EXPECT_EQ(sender(ranks(0, 7), Rank{5}), Rank{5}) << "itself";
  EXPECT_EQ(sender({Rank{0}, Rank{4}, Rank{6}}, Rank{5}), Rank{4}) << "worker";
  EXPECT_EQ(sender({Rank{0}, Rank{6}}, Rank{5}), Rank{6}) << "host";
  EXPECT_EQ(sender({Rank{0}, Rank{1}}, Rank{5}), Rank{0}) << "anybody";
}

TEST(MovePlan, EquallyNearSendersShareTheLoad) {
  const auto model = toy_model(2, 64, false);
  const Cluster cluster{.nodes = 2, .devices_per_node = 4};
  const auto plan
    = move_plan(dp_layout(model, 0, 3), dp_layout(model, 4, 7), cluster);
  std::map<Rank, std::uint64_t> sent;
  for (const auto& transfer : plan)
    sent[transfer.from] += transfer.total_bytes();
  EXPECT_THAT(sent, SizeIs(4));
}

// Half of a vector of 16 numbers fills half of an aligned slot; after it the
// sender has the other half, the receiver padding.
TEST(MovePlan, TheRestOfABoxIsNotCopiedIntoPadding) {
  std::vector<ParameterShape> model(2);
  for (auto& parameter : model) {
    parameter.rows = 16;
    parameter.cols = 1;
    parameter.split_dim = 0;
  }
  const std::vector<Rank> target_devices = {Rank{1}, Rank{2}};
  const auto target = make_layout(model, {.tp = 2}, target_devices, DType::f32);
  const auto plan
    = move_plan(dp_layout(model, 0, 0), target, {.devices_per_node = 3});
  for (const auto& transfer : plan)
    EXPECT_EQ(transfer.total_bytes(), 32u);
  EXPECT_THAT(plan, SizeIs(4));
}

TEST(MovePlan, MissingOwnersAndCastsAreRefused) {
  const auto model = toy_model(2, 8, false);
  auto source = dp_layout(model, 0, 0);
  const auto target = dp_layout(model, 1, 1);
  const Cluster cluster{.devices_per_node = 2};
  source.shards[0].boxes.erase(source.shards[0].boxes.begin() + 1);
  EXPECT_THROW(move_plan(source, target, cluster), InvariantError);
  auto half = dp_layout(model, 0, 0);
  half.dtype = DType::bf16;
  EXPECT_THROW(move_plan(half, target, cluster), InvariantError);
}

TEST(MovePlanProperty, EveryTargetByteIsWrittenOnce) { // I3
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto model
      = toy_model(std::int32_t(1 + random() % 4),
                  std::int64_t(3 + random() % 9), random() % 2 != 0);
    const RandomMove move(model, random);
    const auto& [cluster, kind, source, target] = move;
    const auto plan = move_plan(source, target, cluster);
    EXPECT_EQ(plan, move_plan(source, target, cluster)) << "I8";
    std::size_t received = 0;
    for (const auto& shard : target.shards) {
      received += transfers_to(plan, shard.device).size();
      ASSERT_NO_FATAL_FAILURE(expect_written_once(shard, plan, source));
    }
    EXPECT_EQ(received, plan.size()) << "sends and receives match";
  }
}

Placement random_mesh(const Cluster& cluster, Random& random) {
  const auto draw
    = [&](std::uint32_t most) { return std::uint32_t(1 + random() % most); };
  constexpr Zero zeros[] = {Zero::none, Zero::none, Zero::z3};
  Placement place;
  do {
    place.strategy = {
      .dp = draw(4), .pp = draw(4), .tp = draw(4), .zero = zeros[random() % 3]};
  } while (place.strategy.num_devices() > cluster.num_devices());
  const auto count = place.strategy.num_devices();
  const auto first
    = random() % 3 != 0 ? 0 : random() % (cluster.num_devices() - count + 1);
  place.devices = ranks(std::uint32_t(first), std::uint32_t(first) + count - 1);
  return place;
}

TEST(MovePlanProperty, ReorderedDevicesGetEveryByteOnceAndNoMoreThanBefore) {
  const auto layout_of = [](const auto& model, const Placement& place) {
    return make_layout(model, place.strategy, place.devices, DType::f32);
  };
  int fewer = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto model
      = toy_model(std::int32_t(4 + random() % 9),
                  std::int64_t(12 + random() % 9), random() % 2 != 0);
    const Cluster cluster{.nodes = std::uint32_t(1 + random() % 2),
                          .devices_per_node = 8,
                          .workers_per_node = std::uint32_t(1 + random() % 2)};
    const auto home = random_mesh(cluster, random);
    auto place = random_mesh(cluster, random);
    const auto source = layout_of(model, home);
    const auto before
      = moved_bytes(move_plan(source, layout_of(model, place), cluster));
    auto members = place.devices;
    place.devices = order_devices(home, place, cluster);
    const auto target = layout_of(model, place);
    const auto plan = move_plan(source, target, cluster);
    EXPECT_LE(moved_bytes(plan), before)
      << to_string(home.strategy) << " -> " << to_string(place.strategy);
    fewer += moved_bytes(plan) < before;
    for (const auto& shard : target.shards)
      ASSERT_NO_FATAL_FAILURE(expect_written_once(shard, plan, source));
    std::ranges::sort(place.devices);
    EXPECT_EQ(place.devices, members);
  }
  EXPECT_GT(fewer, 100);
}

TEST(MovePlanProperty, The36PairsOfReaLsTestWriteEveryByteOnce) { // I3
  const auto model = toy_model(8, 24, false);
  const Cluster cluster{.nodes = 2, .devices_per_node = 8};
  const auto expect_moved = [&](const Layout& source, const Layout& target) {
    const auto plan = move_plan(source, target, cluster);
    for (const auto& shard : target.shards)
      expect_written_once(shard, plan, source);
  };
  int pairs = 0;
  for (const auto& from : real_degrees)
    for (const auto& to : real_degrees) {
      const auto source = real_layout(model, from, 0);
      expect_moved(source, real_layout(model, to, 0)); // the same devices,
      expect_moved(source, real_layout(model, to, 4)); // some of them,
      expect_moved(source, real_layout(model, to, 8)); // others
      ++pairs;
    }
  EXPECT_EQ(pairs, 36);
}

} // namespace
} // namespace troupe::plans
