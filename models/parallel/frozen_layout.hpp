// The layout of a plane of weights without fp32 masters: weights that nothing
// changes are stored as kernels read them, those of products in bf16 and all
// others in fp32, 2 bytes a parameter where masters with rounded weights beside
// take 6.
#pragma once

#include "config/model/parameter_shape.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

/// The fp32 masters of weights that products read in bf16.
enum class Masters : std::uint8_t { kept, none };

/// bf16 at the elements where masters would be, then what is read in fp32.
struct FrozenLayout {
  /// First float of each parameter that is read in fp32; others: `in_bf16`.
  std::vector<std::int64_t> fp32_offsets;
  std::int64_t size = 0; ///< floats, a multiple of 16

  static constexpr std::int64_t in_bf16 = -1;
};

/// Returns the layout for parameters whose masters would take `elements`.
FrozenLayout frozen_layout(const std::vector<ParameterShape>& shapes,
                           std::int64_t elements);

} // namespace troupe::models
