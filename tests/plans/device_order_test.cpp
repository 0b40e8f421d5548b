// Coordinates go to the devices that hold most of them already.
#include "plans/device_order.hpp"
#include "plans/layout.hpp"
#include "plans/move_plan.hpp"
#include "plans/replicas.hpp"

#include "problem_support.hpp"
#include <gmock/gmock.h>

using ::testing::ElementsAre;

namespace troupe::plans {
namespace {

Placement mesh(const char* strategy, std::uint32_t first, std::uint32_t last) {
  return {.devices = ranks(first, last), .strategy = parse_strategy(strategy)};
}

/// Numbers of the devices of `to`, in the order of its coordinates.
std::vector<std::uint32_t> order(const char* from, const char* to,
                                 const Cluster& cluster
                                 = {.devices_per_node = 4}) {
  const auto last = cluster.num_devices() - 1;
  std::vector<std::uint32_t> numbers;
  for (const auto device :
       order_devices(mesh(from, 0, last), mesh(to, 0, last), cluster))
    numbers.push_back(device.value);
  return numbers;
}

/// Bytes that leave their device, in shares of the model.
double moved_share(const char* from, const char* to, bool ordered) {
  const auto all = parameters(shape_tiny());
  const Cluster cluster{.devices_per_node = 4};
  const auto source = mesh(from, 0, 3);
  auto target = mesh(to, 0, 3);
  if (ordered)
    target.devices = order_devices(source, target, cluster);
  const auto moved = moved_bytes(move_plan(
    make_layout(all, source.strategy, source.devices, DType::f32),
    make_layout(all, target.strategy, target.devices, DType::f32), cluster));
  return double(moved) / double(weight_bytes(shape_tiny(), DType::f32));
}

TEST(DeviceOrder, CopiesOfATensorShareTakeItsHalves) {
  EXPECT_THAT(order("d2t2", "t4"), ElementsAre(0, 2, 1, 3));
  EXPECT_NEAR(moved_share("d2t2", "t4", false), 0.5, 0.01);
  EXPECT_EQ(moved_share("d2t2", "t4", true), 0) << "all of it lies there";
}

TEST(DeviceOrder, StagesTakeSharesOfTheirOwnTensorPart) {
  EXPECT_THAT(order("p2t2", "t4"), ElementsAre(0, 2, 1, 3));
  EXPECT_NEAR(moved_share("p2t2", "t4", false), 0.75, 0.02);
  EXPECT_NEAR(moved_share("p2t2", "t4", true), 0.5, 0.02);
}

TEST(DeviceOrder, WhatLiesEverywhereStaysInOrder) {
  EXPECT_THAT(order("d4", "t4"), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(moved_share("d4", "t4", true), 0);
  EXPECT_THAT(order("t4", "t4"), ElementsAre(0, 1, 2, 3));
}

// A flat share of a layer has a bit of each tensor share; of the embedding it
// is one.
TEST(DeviceOrder, FlatSharesAreGatheredInOrder) {
  EXPECT_THAT(order("d4z3", "t4"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(order("d2t2z3", "t4"), ElementsAre(0, 2, 1, 3));
  EXPECT_LT(moved_share("d2t2z3", "t4", true),
            moved_share("d2t2z3", "t4", false));
}

TEST(DeviceOrder, TensorPeersStayTogether) {
  EXPECT_THAT(order("t4", "d2t2"), ElementsAre(0, 2, 1, 3)) << "in one worker";
  EXPECT_THAT(
    order("t4", "d2t2", {.devices_per_node = 4, .workers_per_node = 2}),
    ElementsAre(0, 1, 2, 3))
    << "0 and 2 are in two workers";
  EXPECT_THAT(order("d2t2", "t4", {.nodes = 2, .devices_per_node = 2}),
              ElementsAre(0, 1, 2, 3))
    << "no device leaves its node";
}

TEST(DeviceOrder, AMeshOfSomeOfTheDevicesIsOrderedToo) {
  const Cluster cluster{.devices_per_node = 8};
  const auto found
    = order_devices(mesh("d2t2", 0, 3), mesh("t8", 0, 7), cluster);
  EXPECT_THAT(found, ElementsAre(Rank{0}, Rank{2}, Rank{4}, Rank{5}, Rank{1},
                                 Rank{3}, Rank{6}, Rank{7}));
}

TEST(DeviceOrder, AStrategyOfOtherDegreesThanItsMeshIsLeftAlone) {
  const auto found
    = order_devices(mesh("d2t2", 0, 3), mesh("t4", 0, 1), {.nodes = 1});
  EXPECT_THAT(found, ElementsAre(Rank{0}, Rank{1}));
}

TEST(Replicas, StandWhereTheirWeightsAre) {
  const auto workflow = make_ppo();
  auto plan = plan_all(workflow, mesh("d2t2", 0, 3), 4);
  plan.calls["actor_gen"].strategy = parse_strategy("t4");
  plan.calls["ref_inf"].strategy = parse_strategy("t4");
  const auto replicas = replicas_of(workflow, plan);
  EXPECT_THAT(replicas[replicas.of_call("actor_gen")].devices,
              ElementsAre(Rank{0}, Rank{2}, Rank{1}, Rank{3}));
  EXPECT_EQ(replicas[replicas.home("actor")].devices, ranks(0, 3));
  EXPECT_EQ(replicas[replicas.home("ref")].devices, ranks(0, 3))
    << "nothing moves there";
}

TEST(Replicas, FollowersStandWhereTheirLeaderIs) {
  const auto workflow
    = make_ppo([](Settings& s) { s.models["ref"].ema_decay = 0.9; });
  auto plan = plan_all(workflow, mesh("d2t2", 0, 3), 4);
  plan.calls["ref_inf"].strategy = parse_strategy("t4");
  const auto replicas = replicas_of(workflow, plan);
  EXPECT_THAT(replicas[replicas.home("ref")].devices,
              ElementsAre(Rank{0}, Rank{2}, Rank{1}, Rank{3}));
}

} // namespace
} // namespace troupe::plans
