// Conversions between stored and computed floating-point types. To fewer bits:
// round to nearest, ties to even, as PyTorch does; NaN stays NaN.
#pragma once

#include "config/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::models {

float bf16_to_f32(std::uint16_t bits) noexcept;
std::uint16_t f32_to_bf16(float value) noexcept;
float f16_to_f32(std::uint16_t bits) noexcept;
std::uint16_t f32_to_f16(float value) noexcept;

/// Converts `source.size() / size_bytes(from)` elements; `target` must hold as
/// many of type `to`. Equal types are copied; else both must be floating-point
/// (bf16, f16, f32, f64). The spans need no alignment and must not overlap.
void convert(DType from, std::span<const std::byte> source, DType to,
             std::span<std::byte> target);

} // namespace troupe::models
