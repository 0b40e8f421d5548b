#include "plans/weights/gather_buffers.hpp"

#include <algorithm>
#include <array>

namespace troupe::plans {

namespace {

constexpr std::uint32_t tied_place = 2;
constexpr std::uint32_t num_places = 3;

/// Returns the units of these boxes, without their place.
std::vector<GatherBuffer>
windows_units(std::span<const ParameterShape> parameters,
              std::span<const Box> boxes, const Strategy& strategy) {
  std::vector<GatherBuffer> units;
  for (std::size_t begin = 0; begin < boxes.size();) {
    const UnitRun unit = unit_run(parameters, boxes.subspan(begin), strategy);
    const auto holders = unit_holders(strategy, unit.is_dealt);
    units.push_back({.layer = unit.layer,
                     .first_box = begin,
                     .end_box = begin + unit.num_boxes,
                     .is_dealt = unit.is_dealt,
                     .size = unit.num_elements,
                     .run = (unit.num_elements + holders - 1) / holders});
    begin += unit.num_boxes;
  }
  return units;
}

/// Returns whether the last unit is here and uses the embedding as its head.
bool windows_read_twice(std::span<const ParameterShape> parameters,
                        const std::vector<GatherBuffer>& units) {
  if (units.empty() || units.front().layer >= 0)
    return false;
  std::int32_t last = 0;
  for (const auto& parameter : parameters)
    last = std::max(last, parameter.layer);
  const bool has_head
    = std::ranges::any_of(parameters, [&](const ParameterShape& parameter) {
        return parameter.layer == last && !parameter.vector;
      });
  return units.back().layer == last && !has_head;
}

} // namespace

GatherBuffers gather_buffers(std::span<const ParameterShape> parameters,
                             std::span<const Box> boxes,
                             const Strategy& strategy) {
  constexpr std::int64_t grain = parameter_alignment_bytes / sizeof(float);
  GatherBuffers windows{.units = windows_units(parameters, boxes, strategy)};
  const bool tied = windows_read_twice(parameters, windows.units);
  std::array<std::int64_t, num_places> sizes{};
  for (std::size_t i = 0; i < windows.units.size(); ++i) {
    auto& unit = windows.units[i];
    unit.place
      = tied && i == 0 ? tied_place : static_cast<std::uint32_t>(i % 2);
    const auto padded = (unit.run * strategy.dp + grain - 1) / grain * grain;
    sizes[unit.place] = std::max(sizes[unit.place], padded);
  }
  std::array<std::int64_t, num_places> begins{};
  for (std::uint32_t place = 0; place < num_places; ++place) {
    begins[place] = windows.size;
    windows.size += sizes[place];
  }
  for (auto& unit : windows.units) {
    unit.begin = begins[unit.place];
    auto at = unit.begin;
    for (auto box = unit.first_box; box < unit.end_box; ++box) {
      windows.offsets.push_back(at);
      at += boxes[box].num_elements();
    }
  }
  return windows;
}

std::vector<std::uint64_t>
window_bytes(std::span<const ParameterShape> parameters,
             const Strategy& strategy, DType dtype) {
  std::vector<std::uint64_t> bytes(strategy.pp, 0);
  if (!cuts_weights(strategy))
    return bytes;
  const auto boxes = first_boxes(parameters, strategy);
  for (std::uint32_t stage = 0; stage < strategy.pp; ++stage) {
    const auto windows = gather_buffers(parameters, boxes[stage], strategy);
    bytes[stage] = static_cast<std::uint64_t>(windows.size) * size_bytes(dtype);
  }
  return bytes;
}

} // namespace troupe::plans
