#include "models/float_convert.hpp"

#include "config/error.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <string>

namespace troupe::models {

namespace {

// Branch-free on purpose: the loops below become vector code.
inline float bf16_up(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t bf16_down(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  const std::uint32_t quiet = bits | 0x00400000;
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16);
}

inline float f16_up(std::uint16_t bits) noexcept {
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

inline std::uint16_t f16_down(float value) noexcept {
  constexpr std::uint32_t smallest_normal = 113U << 23;
  constexpr std::uint32_t overflow = (127U + 16U) << 23;
  constexpr std::uint32_t magic = ((127U - 15U) + (23U - 10U) + 1U) << 23;
  const auto all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = all & 0x80000000U;
  const std::uint32_t bits = all ^ sign;
  // Adding the magic number lets the adder do the rounding of subnormals.
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

/// A fixed inner count lets -O2 vectorise; memcpy permits any alignment.
template <class From, class To, class Function>
void convert_blocks(std::span<const std::byte> source,
                    std::span<std::byte> target, Function one) {
  constexpr std::size_t block = 64;
  const std::size_t count = source.size() / sizeof(From);
  std::size_t done = 0;
  std::array<From, block> in{};
  std::array<To, block> out{};
  while (done < count) {
    const std::size_t now = count - done < block ? count - done : block;
    std::memcpy(in.data(), source.data() + done * sizeof(From),
                now * sizeof(From));
    for (std::size_t i = 0; i < block; ++i)
      out[i] = one(in[i]);
    std::memcpy(target.data() + done * sizeof(To), out.data(),
                now * sizeof(To));
    done += now;
  }
}

template <class From, class Function>
void convert_to(std::span<const std::byte> source, DType to,
                std::span<std::byte> target, Function up) {
  switch (to) {
  case DType::bf16:
    return convert_blocks<From, std::uint16_t>(
      source, target, [up](From x) { return bf16_down(up(x)); });
  case DType::f16:
    return convert_blocks<From, std::uint16_t>(
      source, target, [up](From x) { return f16_down(up(x)); });
  case DType::f32:
    return convert_blocks<From, float>(source, target, up);
  case DType::f64:
    return convert_blocks<From, double>(
      source, target, [up](From x) { return static_cast<double>(up(x)); });
  default:
    TROUPE_CHECK(false, "cannot convert to " + std::string(to_string(to)));
  }
}

} // namespace

float bf16_to_f32(std::uint16_t bits) noexcept {
  return bf16_up(bits);
}

std::uint16_t f32_to_bf16(float value) noexcept {
  return bf16_down(value);
}

float f16_to_f32(std::uint16_t bits) noexcept {
  return f16_up(bits);
}

std::uint16_t f32_to_f16(float value) noexcept {
  return f16_down(value);
}

void convert(DType from, std::span<const std::byte> source, DType to,
             std::span<std::byte> target) {
  const std::size_t count = source.size() / size_bytes(from);
  TROUPE_CHECK(count * size_bytes(from) == source.size(), "ragged source");
  TROUPE_CHECK(count * size_bytes(to) == target.size(), "sizes differ");
  if (count == 0)
    return;
  if (from == to) {
    std::memcpy(target.data(), source.data(), source.size());
    return;
  }
  switch (from) {
  case DType::bf16:
    return convert_to<std::uint16_t>(source, to, target, bf16_up);
  case DType::f16:
    return convert_to<std::uint16_t>(source, to, target, f16_up);
  case DType::f32:
    return convert_to<float>(source, to, target, [](float x) { return x; });
  case DType::f64:
    return convert_to<double>(source, to, target,
                              [](double x) { return static_cast<float>(x); });
  default:
    TROUPE_CHECK(false, "cannot convert from " + std::string(to_string(from)));
  }
}

} // namespace troupe::models
