// Converts arrays between stored and computed floating-point types, with the
// rounding of config/base/float16.hpp.
#pragma once

#include "config/base/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::models {

/// Converts `source.size() / size_bytes(from)` elements; `target` must hold as
/// many of type `to`. Equal types are copied; else both must be floating-point
/// (bf16, f16, f32, f64). The spans need no alignment and must not overlap.
void convert(DType from, std::span<const std::byte> source, DType to,
             std::span<std::byte> target);

} // namespace troupe::models
