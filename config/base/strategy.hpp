// Degrees on a mesh, written `d4c2p2t2`, with suffixes e4 (the experts of a
// layer are dealt to 4 devices), z1 / z3 (optimizer / also parameters sharded
// over dp) and s (sequence parallel).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

enum class Zero : std::uint8_t { none = 0, z1 = 1, z3 = 3 };

struct Strategy {
  /// Ranks that have the same weights, which hence sum gradients and share the
  /// optimizer: those with other samples (d) times those of a sample (c).
  std::uint32_t dp = 1;
  std::uint32_t pp = 1;
  std::uint32_t tp = 1;
  Zero zero = Zero::none;
  bool sequence_parallel = false;
  /// Expert parallelism: devices that the experts of a layer are dealt to, each
  /// expert whole; 1: tp cuts each expert.
  std::uint32_t ep = 1;
  /// Context parallelism: neighbouring dp ranks that share the tokens of their
  /// samples; a divisor of dp.
  std::uint32_t cp = 1;

  auto operator<=>(const Strategy&) const = default;
  constexpr std::uint32_t num_devices() const {
    return dp * pp * tp;
  }
  /// Returns among how many groups of context parallelism samples are dealt.
  constexpr std::uint32_t sample_ranks() const {
    return dp / cp;
  }
  /// Returns how many neighbouring dp ranks a group of expert parallelism
  /// spans, which has a layer's experts between them and exchanges tokens.
  constexpr std::uint32_t expert_group_dp() const {
    return ep > tp ? ep / tp : 1;
  }
};

/// Returns "d2c2p1t4e4z1s", whose dp is 4; degrees of 1 are omitted except in a
/// lone "d1".
std::string to_string(const Strategy& strategy);
/// Parses the form of to_string. Throws std::invalid_argument with one
/// sentence.
Strategy parse_strategy(std::string_view text);

/// Position of a device in its strategy.
struct Coordinate {
  std::uint32_t dp = 0;
  std::uint32_t pp = 0;
  std::uint32_t tp = 0;
  auto operator<=>(const Coordinate&) const = default;
};

/// Returns the coordinate of the mesh's i-th device. Order: tp varies fastest,
/// then dp, then pp, so that a tensor group consists of adjacent devices.
Coordinate coordinate_of(const Strategy& strategy, std::uint32_t index);
/// Returns the coordinate's place in its group of context parallelism.
constexpr std::uint32_t context_rank_of(const Strategy& strategy,
                                        const Coordinate& where) {
  return where.dp % strategy.cp;
}
/// Returns the coordinate's place among the devices that have a layer's
/// experts, below `ep` or 0. Its dp neighbours differ in steps of tp.
std::uint32_t expert_rank_of(const Strategy& strategy, const Coordinate& where);
/// Returns the index of a coordinate; the inverse of `coordinate_of`.
std::uint32_t index_of(const Strategy& strategy, const Coordinate& where);

} // namespace troupe
