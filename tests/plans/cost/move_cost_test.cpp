// The closed form against the planner, which lists every transfer.
#include "plans/cost/hardware.hpp"
#include "plans/cost/move_cost.hpp"
#include "plans/weights/device_order.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

#include <random>

namespace troupe::plans {
namespace {

Placement random_placement(std::mt19937& random, const Cluster& cluster) {
  const char* strategies[]
    = {"d1",   "d2", "d4",   "t2",   "t4",   "p2",     "p4",     "d2t2", "p2t2",
       "d2p2", "t8", "d4t2", "p2t4", "d4z3", "d2t2z3", "d2p2t2", "d8"};
  while (true) {
    const auto strategy = parse_strategy(strategies[random() % 17]);
    if (strategy.num_devices() > cluster.num_devices())
      continue;
    const auto count = strategy.num_devices();
    const auto first = random() % (cluster.num_devices() / count) * count;
    return {.devices
            = ranks(std::uint32_t(first), std::uint32_t(first) + count - 1),
            .strategy = strategy};
  }
}

TEST(MoveCost, ClosedFormIsWithin5PercentOfTheMovePlanByLink) {
  const auto shape = llama_shape(8, 512, 1408, 8, 8);
  const auto model = unit_bytes(shape, DType::bf16);
  const auto whole = static_cast<double>(weight_bytes(shape, DType::bf16));
  const Cluster cluster{.nodes = 2, .devices_per_node = 8};
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const auto source = random_placement(random, cluster);
    auto target = random_placement(random, cluster);
    if (i % 2 == 0)
      target.devices = order_devices(source, target, cluster);
    const auto fast = move_bytes(model, source, target, cluster);
    const auto slow
      = planned_move_bytes(shape, DType::bf16, source, target, cluster);
    const auto text = print_devices(source.devices) + " "
                      + to_string(source.strategy) + " -> "
                      + print_devices(target.devices) + " "
                      + to_string(target.strategy);
    const auto all = slow.device + slow.intra + slow.inter;
    const auto slack = 0.05 * std::max(all, 0.2 * whole);
    EXPECT_NEAR(fast.device, slow.device, slack) << text;
    EXPECT_NEAR(fast.intra, slow.intra, slack) << text;
    EXPECT_NEAR(fast.inter, slow.inter, slack) << text;
  }
}

/// Nodes of such meshes are alike, and counted once.
TEST(MoveCost, ALargeMeshMovesAsPlanned) {
  const auto shape = llama_shape(8, 512, 1408, 8, 8);
  const auto model = unit_bytes(shape, DType::bf16);
  const Cluster cluster{.nodes = 8, .devices_per_node = 4};
  const char* strategies[]
    = {"d8t4", "d2p4t4", "d16t2", "d32", "d8p2t2", "d4p8", "d16t2z3", "p8t4"};
  for (const auto* from : strategies)
    for (const auto* to : strategies) {
      const Placement source{.devices = ranks(0, 31),
                             .strategy = parse_strategy(from)};
      Placement target{.devices = ranks(0, 31), .strategy = parse_strategy(to)};
      target.devices = order_devices(source, target, cluster);
      const auto fast = move_bytes(model, source, target, cluster);
      const auto slow
        = planned_move_bytes(shape, DType::bf16, source, target, cluster);
      const auto slack = 0.05 * (slow.device + slow.intra + slow.inter);
      EXPECT_NEAR(fast.device, slow.device, slack) << from << " -> " << to;
      EXPECT_NEAR(fast.intra, slow.intra, slack) << from << " -> " << to;
      EXPECT_NEAR(fast.inter, slow.inter, slack) << from << " -> " << to;
    }
}

TEST(MoveCost, NothingMovesBetweenEqualReplicas) {
  const auto model = unit_bytes(shape_7b(), DType::bf16);
  const Cluster cluster{.devices_per_node = 8};
  const Placement place{.devices = ranks(0, 7),
                        .strategy = parse_strategy("d2t4")};
  const auto bytes = move_bytes(model, place, place, cluster);
  EXPECT_EQ(bytes.intra + bytes.inter, 0);
  EXPECT_EQ(move_seconds(bytes, load_hardware("a100x8")), 0);
}

TEST(MoveCost, TimeIsThatOfTheBusiestDevice) {
  const auto model = unit_bytes(shape_7b(), DType::bf16);
  const Cluster cluster{.nodes = 2, .devices_per_node = 8};
  const Placement one{.devices = ranks(0, 0), .strategy = {}};
  const Placement all{.devices = ranks(8, 15), .strategy = {.dp = 8}};
  const auto bytes = move_bytes(model, one, all, cluster);
  const auto whole = static_cast<double>(weight_bytes(shape_7b(), DType::bf16));
  EXPECT_NEAR(bytes.inter, 8 * whole, 0.01 * whole);
  EXPECT_NEAR(bytes.busiest_inter, 8 * whole, 0.01 * whole)
    << "the one owner sends to all";
  const auto planned
    = planned_move_bytes(shape_7b(), DType::bf16, one, all, cluster);
  EXPECT_NEAR(planned.busiest_inter, bytes.busiest_inter, 0.01 * whole);
}

ModelShape shape_of_experts() {
  auto shape = llama_shape(4, 256, 512, 8, 8);
  shape.experts.count = 32;
  shape.experts.per_token = 4;
  shape.experts.width = 128;
  return shape;
}

TEST(MoveCost, JoinedExpertsHaveTheSameWeightsButForTheRouter) {
  const auto shape = shape_of_experts();
  const auto joined
    = with_joined_experts(shape, parse_strategy("t4"), parse_strategy("t4e4"));
  EXPECT_EQ(joined.experts.count, 4) << "a part each";
  EXPECT_EQ(num_parameters(shape) - num_parameters(joined),
            std::uint64_t{4 * 256 * (32 - 4)});
  const auto eights = with_joined_experts(shape, parse_strategy("t4e4"),
                                          parse_strategy("d8e8"));
  EXPECT_EQ(eights.experts.count, 8) << "parts of either are whole ones";
}

TEST(MoveCost, MovesOfJoinedExpertsAreNearThoseOfEachExpert) {
  const auto shape = shape_of_experts();
  const Cluster cluster{.nodes = 2, .devices_per_node = 8};
  const char* strategies[]
    = {"t8", "t8e8", "d2t4e4", "d2t4e8", "d8e8z1", "p2t4e4", "d8"};
  for (const auto* from : strategies)
    for (const auto* to : strategies)
      for (const std::uint32_t first : {0U, 8U}) {
        const Placement source{.devices = ranks(0, 7),
                               .strategy = parse_strategy(from)};
        const Placement target{.devices = ranks(first, first + 7),
                               .strategy = parse_strategy(to)};
        const auto bytes_of = [&](const ModelShape& model) {
          return planned_move_bytes(model, DType::bf16, source, target,
                                    cluster);
        };
        const auto each = bytes_of(shape);
        const auto joined = bytes_of(
          with_joined_experts(shape, source.strategy, target.strategy));
        const auto near = 0.05 * double(weight_bytes(shape, DType::bf16));
        EXPECT_NEAR(joined.intra, each.intra, near) << from << " " << to;
        EXPECT_NEAR(joined.inter, each.inter, near) << from << " " << to;
      }
}

} // namespace
} // namespace troupe::plans
