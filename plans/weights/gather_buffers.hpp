// z3: the buffers that the units of a device's part (embedding, layer, final
// norm and head; UnitRun) are gathered into while it computes. A unit is stored
// there as one flat run, its boxes without gaps, of which dp rank i sends the
// i-th ceil-sized part (plans/weights/layout.hpp). Neighbours alternate between
// two buffers, so that the next unit can arrive while one is in use. A tied
// embedding, which both ends of a pass read, has its own buffer.
#pragma once

#include "config/base/strategy.hpp"
#include "config/model/model_shape.hpp"
#include "plans/weights/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

struct GatherBuffer {
  std::int32_t layer = 0;    ///< as in ParameterShape
  std::size_t first_box = 0; ///< in the part
  std::size_t end_box = 0;
  bool is_dealt = false;   ///< its peers are those that hold the same experts
  std::int64_t size = 0;   ///< elements of its boxes
  std::int64_t run = 0;    ///< elements per dp rank, at most
  std::uint32_t place = 0; ///< buffer: 0 or 1, 2 for a tied embedding
  std::int64_t begin = 0;  ///< offset of its buffer

  bool operator==(const GatherBuffer&) const = default;
};

struct GatherBuffers {
  std::vector<GatherBuffer> units = {};   ///< in model order
  std::vector<std::int64_t> offsets = {}; ///< of each box
  std::int64_t size = 0;                  ///< elements of all buffers
};

/// Returns whether a device holds only a part of its weights.
constexpr bool cuts_weights(const Strategy& strategy) {
  return strategy.zero == Zero::z3 && strategy.dp > 1;
}

/// Plans the buffers; `boxes` are those of one coordinate before z cuts them
/// (`whole_boxes`).
GatherBuffers gather_buffers(std::span<const ParameterShape> parameters,
                             std::span<const Box> boxes,
                             const Strategy& strategy);

/// Returns the bytes of these buffers in each pipeline stage; zeros without z3.
std::vector<std::uint64_t>
window_bytes(std::span<const ParameterShape> parameters,
             const Strategy& strategy, DType dtype);

} // namespace troupe::plans
