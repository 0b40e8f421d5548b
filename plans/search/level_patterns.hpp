// The ways in which up to three calls share a line of devices, as lanes: calls
// of a lane follow each other, lanes run side by side; `across` runs before all
// lanes (or after them, which takes as long).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::plans::internal {

struct LevelPattern {
  std::vector<std::vector<std::uint32_t>> lanes = {}; ///< indices in the level
  std::int32_t across = -1; ///< conflicts with all lanes; -1: none
};

/// Returns all patterns of `num_calls` (1 to 3) calls.
const std::vector<LevelPattern>& level_patterns(std::size_t num_calls);

double pattern_seconds(const LevelPattern& pattern,
                       std::span<const double> seconds);
/// Returns the least number of devices that the pattern needs.
std::uint32_t pattern_width(const LevelPattern& pattern,
                            std::span<const std::uint32_t> num_devices);

using Align
  = std::function<std::uint32_t(std::uint32_t from, std::uint32_t count)>;
/// Returns the distinct positions of the calls: all on a line of at most
/// `all_up_to` devices; on longer ones the canonical ones, whose number does
/// not grow.
std::vector<std::vector<std::uint32_t>> pattern_positions(
  const LevelPattern& pattern, std::span<const std::uint32_t> num_devices,
  std::uint32_t line, std::uint32_t all_up_to, const Align& align);

} // namespace troupe::plans::internal
