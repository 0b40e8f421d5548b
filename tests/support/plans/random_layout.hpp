// Layouts for tests of moves: random ones, and those of ReaL's own test.
#pragma once

#include "plans/weights/layout.hpp"

#include "tests/support/plans/support.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace troupe::plans {

inline Layout random_layout(const std::vector<ParameterShape>& model,
                            std::uint32_t num_devices, LayoutKind kind,
                            std::mt19937_64& random) {
  constexpr Zero zeros[] = {Zero::none, Zero::z1, Zero::z3};
  Strategy strategy{.dp = std::uint32_t(1 + random() % 4),
                    .pp = std::uint32_t(1 + random() % 3),
                    .tp = std::uint32_t(1 + random() % 4),
                    .zero = zeros[random() % 3]};
  auto devices = ranks(0, num_devices - 1);
  std::ranges::shuffle(devices, random);
  while (strategy.num_devices() > num_devices)
    strategy.tp > 1 ? --strategy.tp : --strategy.dp;
  devices.resize(strategy.num_devices());
  return make_layout(model, strategy, devices, DType::f32, kind);
}

/// Any two layouts of a kind on three nodes.
struct RandomMove {
  RandomMove(const std::vector<ParameterShape>& model, std::mt19937_64& random)
    : cluster{.nodes = 3,
              .devices_per_node = 6,
              .workers_per_node = std::uint32_t(1 + random() % 6)},
      kind(random() % 3 == 0 ? LayoutKind::optimizer : LayoutKind::weights),
      source(random_layout(model, 18, kind, random)),
      target(random_layout(model, 18, kind, random)) {}

  Cluster cluster;
  LayoutKind kind;
  Layout source;
  Layout target;
};

/// (pipeline, data, tensor) of ReaL's own test of its weight moves.
inline constexpr std::uint32_t real_degrees[][3]
  = {{4, 1, 1}, {2, 2, 2}, {1, 8, 1}, {3, 2, 1}, {2, 1, 2}, {1, 2, 2}};

inline Layout real_layout(const std::vector<ParameterShape>& model,
                          const std::uint32_t (&degrees)[3],
                          std::uint32_t first) {
  const Strategy strategy{.dp = degrees[1], .pp = degrees[0], .tp = degrees[2]};
  return make_layout(model, strategy,
                     ranks(first, first + strategy.num_devices() - 1),
                     DType::f32);
}

} // namespace troupe::plans
