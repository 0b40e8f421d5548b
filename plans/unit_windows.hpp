// z3: the room through which the units of a device's part (embedding, layer,
// final norm and head) pass while it computes. A unit stands there as one flat
// run, its boxes without gaps, of which copy i gives the i-th ceil-sized part
// (plans/layout.hpp). Neighbours alternate between two places, so that the next
// unit can come while one is in use. A tied embedding, which both ends of a
// pass read, has a place of its own.
#pragma once

#include "config/model_shape.hpp"
#include "config/strategy.hpp"
#include "plans/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

struct UnitWindow {
  std::int32_t layer = 0;    ///< as in ParameterShape
  std::size_t first_box = 0; ///< in the part
  std::size_t end_box = 0;
  std::int64_t size = 0;   ///< elements of its boxes
  std::int64_t run = 0;    ///< of them a copy has at most so many
  std::uint32_t place = 0; ///< 0 or 1, 2 for a tied embedding
  std::int64_t begin = 0;  ///< of the place, in the room

  bool operator==(const UnitWindow&) const = default;
};

struct UnitWindows {
  std::vector<UnitWindow> units = {};     ///< in model order
  std::vector<std::int64_t> offsets = {}; ///< of each box, in the room
  std::int64_t size = 0;                  ///< elements of the room
};

/// Whether a device holds a part of its weights only.
constexpr bool cuts_weights(const Strategy& strategy) {
  return strategy.zero == Zero::z3 && strategy.dp > 1;
}

/// `boxes` are one coordinate's before z cuts them (`whole_boxes`).
UnitWindows unit_windows(std::span<const ParameterShape> parameters,
                         std::span<const Box> boxes, std::uint32_t dp);

/// Bytes of that room in each pipeline stage; zeros without z3.
std::vector<std::uint64_t>
window_bytes(std::span<const ParameterShape> parameters,
             const Strategy& strategy, DType dtype);

} // namespace troupe::plans
