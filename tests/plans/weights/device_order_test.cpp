// Coordinates are assigned to the devices that already hold most of them.
#include "plans/weights/device_order.hpp"
#include "plans/weights/layout.hpp"
#include "plans/weights/move_plan.hpp"
#include "plans/weights/replicas.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

using ::testing::ElementsAre;

namespace troupe::plans {
namespace {

Placement mesh(const char* strategy, std::uint32_t first, std::uint32_t last) {
  return {.devices = ranks(first, last), .strategy = parse_strategy(strategy)};
}

/// Returns the device numbers of `to`, in the order of its coordinates.
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

/// Returns the bytes that leave their device, as shares of the model.
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

TEST(DeviceOrder, ReplicasOfATensorShardTakeItsHalves) {
  EXPECT_THAT(order("d2t2", "t4"), ElementsAre(0, 2, 1, 3));
  EXPECT_NEAR(moved_share("d2t2", "t4", false), 0.5, 0.01);
  EXPECT_EQ(moved_share("d2t2", "t4", true), 0) << "all of it lies there";
}

TEST(DeviceOrder, StagesTakeSharesOfTheirOwnTensorShard) {
  EXPECT_THAT(order("p2t2", "t4"), ElementsAre(0, 2, 1, 3));
  EXPECT_NEAR(moved_share("p2t2", "t4", false), 0.75, 0.02);
  EXPECT_NEAR(moved_share("p2t2", "t4", true), 0.5, 0.02);
}

TEST(DeviceOrder, FullyReplicatedWeightsStayInOrder) {
  EXPECT_THAT(order("d4", "t4"), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(moved_share("d4", "t4", true), 0);
  EXPECT_THAT(order("t4", "t4"), ElementsAre(0, 1, 2, 3));
}

// A flat shard of a layer has a part of each tensor shard; of the embedding it
// is one.
TEST(DeviceOrder, FlatShardsAreGatheredInOrder) {
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

TEST(DeviceOrder, AMeshOfSomeDevicesIsOrdered) {
  const Cluster cluster{.devices_per_node = 8};
  const auto found
    = order_devices(mesh("d2t2", 0, 3), mesh("t8", 0, 7), cluster);
  EXPECT_THAT(found, ElementsAre(Rank{0}, Rank{2}, Rank{4}, Rank{5}, Rank{1},
                                 Rank{3}, Rank{6}, Rank{7}));
}

TEST(DeviceOrder, AStrategyThatDoesNotFitItsMeshIsUnchanged) {
  const auto found
    = order_devices(mesh("d2t2", 0, 3), mesh("t4", 0, 1), {.nodes = 1});
  EXPECT_THAT(found, ElementsAre(Rank{0}, Rank{1}));
}

TEST(DeviceOrder, ReplicasArePlacedWhereTheirWeightsAre) {
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

TEST(DeviceOrder, EmaModelsArePlacedWhereTheirSourceIs) {
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
