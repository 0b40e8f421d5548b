// The lower bound against the closed form, wherever the meshes are.
#include "plans/cost/hardware.hpp"
#include "plans/cost/least_move.hpp"
#include "plans/cost/move_cost.hpp"
#include "plans/weights/device_order.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

#include <random>
#include <string>

namespace troupe::plans {
namespace {

constexpr std::uint32_t node_size = 8;
constexpr std::uint32_t num_nodes = 12;

/// A mesh of any size and strategy, inside a node or from the begin of one.
Placement drawn_mesh(std::mt19937& random, std::uint32_t num_layers) {
  while (true) {
    const auto draw = [&](std::uint32_t below) {
      return static_cast<std::uint32_t>(random() % below);
    };
    const bool small = draw(3) == 0;
    const auto count
      = small ? 1u << draw(3) : node_size * (1 + draw(num_nodes));
    const auto tp = 1u << draw(4);
    const auto pp = 1 + draw(12);
    if (count % (tp * pp) != 0 || pp > num_layers)
      continue;
    Strategy strategy{.dp = count / tp / pp, .pp = pp, .tp = tp};
    if (strategy.dp > 1 && draw(3) == 0)
      strategy.zero = Zero::z3;
    const auto begin
      = small ? draw(num_nodes) * node_size + draw(node_size / count) * count
              : draw(num_nodes - count / node_size + 1) * node_size;
    return {.devices = ranks(begin, begin + count - 1), .strategy = strategy};
  }
}

/// A drawn move of a model: its lower bound and its seconds.
struct DrawnMove {
  double least_s = 0;
  double move_s = 0;
  std::string text = {};
};

DrawnMove drawn_move(std::mt19937& random, const ModelShape& shape,
                     const Hardware& hardware) {
  const double sent_share = random() % 2 == 0 ? 1 : 0.5;
  const Cluster cluster{.nodes = num_nodes, .devices_per_node = node_size};
  const auto model = unit_bytes(shape, DType::bf16);
  const auto source = drawn_mesh(random, 12);
  auto target = drawn_mesh(random, 12);
  if (random() % 4 != 0)
    target.devices = order_devices(source, target, cluster);
  return {.least_s = least_move_seconds(model, source.strategy, target.strategy,
                                        node_size, hardware, sent_share),
          .move_s = move_seconds(move_bytes(model, source, target, cluster),
                                 hardware, sent_share),
          .text = print_devices(source.devices) + " "
                  + to_string(source.strategy) + " -> "
                  + print_devices(target.devices) + " "
                  + to_string(target.strategy)};
}

TEST(LeastMove, IsAtMostTheMoveWhereverTheMeshesAre) {
  auto tied = llama_shape(12, 512, 1408, 8, 8);
  tied.tied_embeddings = true;
  std::mt19937 random(11);
  int close = 0, all = 0;
  for (int i = 0; i < 1200; ++i) {
    const auto move
      = drawn_move(random, i % 2 == 0 ? shape_7b() : tied,
                   load_hardware(i % 4 < 2 ? "h100x8" : "a100x8"));
    EXPECT_LE(move.least_s, move.move_s * (1 + 1e-9)) << move.text;
    close += move.least_s > 0.5 * move.move_s;
    all += move.move_s > 0;
  }
  EXPECT_GT(close, all / 3) << "a bound of next to nothing rules nothing out";
}

} // namespace
} // namespace troupe::plans
