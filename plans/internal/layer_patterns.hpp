// The ways in which up to three calls share a line of devices, as lanes: calls
// of a lane follow each other, lanes run side by side; `first` runs before all
// lanes (or after them, which takes as long).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::plans::internal {

struct LayerPattern {
  std::vector<std::vector<std::uint32_t>> lanes = {}; ///< indices in the layer
  std::int32_t across = -1; ///< conflicts with all lanes; -1: none
};

/// All patterns of `num_calls` (1 to 3) calls.
const std::vector<LayerPattern>& layer_patterns(std::size_t num_calls);

double pattern_seconds(const LayerPattern& pattern,
                       std::span<const double> seconds);
/// Devices that the pattern needs at least.
std::uint32_t pattern_width(const LayerPattern& pattern,
                            std::span<const std::uint32_t> num_devices);

using Align
  = std::function<std::uint32_t(std::uint32_t from, std::uint32_t count)>;
/// Positions of the calls, each once: all on a line of at most `all_up_to`
/// devices; on longer ones the canonical ones, whose number does not grow.
std::vector<std::vector<std::uint32_t>> pattern_positions(
  const LayerPattern& pattern, std::span<const std::uint32_t> num_devices,
  std::uint32_t line, std::uint32_t all_up_to, const Align& align);

} // namespace troupe::plans::internal
