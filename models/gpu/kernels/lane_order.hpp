// The order in which the host runs the lanes of each phase, and the blocks of a
// kernel (grid.hpp). A GPU has none: a kernel whose results depend on it has a
// race, which shows as other bits under another order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>

namespace troupe::models::gpu {

class LaneOrder {
public:
  static LaneOrder forward() {
    return {Kind::forward, 0};
  }
  static LaneOrder reversed() {
    return {Kind::reversed, 0};
  }
  /// Returns an order that is another one in each phase.
  static LaneOrder shuffled(std::uint64_t seed) {
    return {Kind::shuffled, seed};
  }

  /// Writes the order of the next phase.
  void next(std::span<int> order) {
    std::iota(order.begin(), order.end(), 0);
    if (kind_ == Kind::reversed)
      std::reverse(order.begin(), order.end());
    if (kind_ == Kind::shuffled)
      std::shuffle(order.begin(), order.end(), words_);
  }

private:
  enum class Kind : std::uint8_t { forward, reversed, shuffled };
  LaneOrder(Kind kind, std::uint64_t seed) : kind_(kind), words_(seed) {}

  Kind kind_;
  std::mt19937_64 words_;
};

} // namespace troupe::models::gpu
