// The 16-bit floating-point types as their bits. To fewer bits: round to
// nearest, ties to even, as in PyTorch; NaN stays NaN. Free of branches, so
// that loops over them are vectorized. Libraries that have these (ATen, torch's
// headers) are closed to the layers that store and send numbers.
#pragma once

#include <bit>
#include <cstdint>

namespace troupe {

constexpr float bf16_to_f32(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t f32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  const std::uint32_t quiet = bits | 0x00400000;
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16);
}

constexpr float f16_to_f32(std::uint16_t bits) noexcept {
  constexpr std::uint32_t exponent_mask = 0x7C00U << 13;
  const float subnormal_offset = std::bit_cast<float>(113U << 23);
  const std::uint32_t body = (bits & 0x7FFFU) << 13;
  const std::uint32_t exponent = body & exponent_mask;
  const std::uint32_t normal = body + ((127U - 15U) << 23);
  const std::uint32_t infinite = normal + ((128U - 16U) << 23);
  const float small
    = std::bit_cast<float>(normal + (1U << 23)) - subnormal_offset;
  std::uint32_t out = exponent == exponent_mask ? infinite : normal;
  out = exponent == 0 ? std::bit_cast<std::uint32_t>(small) : out;
  return std::bit_cast<float>(out | ((bits & 0x8000U) << 16));
}

constexpr std::uint16_t f32_to_f16(float value) noexcept {
  constexpr std::uint32_t smallest_normal = 113U << 23;
  constexpr std::uint32_t overflow = (127U + 16U) << 23;
  constexpr std::uint32_t magic = ((127U - 15U) + (23U - 10U) + 1U) << 23;
  const auto all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = all & 0x80000000U;
  const std::uint32_t bits = all ^ sign;
  // adding the magic number lets the adder round subnormals
  const float shifted
    = std::bit_cast<float>(bits) + std::bit_cast<float>(magic);
  const std::uint32_t small = std::bit_cast<std::uint32_t>(shifted) - magic;
  const std::uint32_t normal
    = (bits + ((15U - 127U) << 23) + 0xFFFU + ((bits >> 13) & 1U)) >> 13;
  const std::uint32_t special = bits > 0x7F800000U ? 0x7E00U : 0x7C00U;
  std::uint32_t out = bits < smallest_normal ? small : normal;
  out = bits >= overflow ? special : out;
  return static_cast<std::uint16_t>(out | (sign >> 16));
}

} // namespace troupe
