// exp and log of floats without branches or library calls, so that the compiler
// can vectorise loops around them, and that a GPU computes the same bits
// (models/gpu/kernels/grid.hpp). Within 2 ulp of the correctly rounded value on
// the ranges stated (tests/models/kernels/host_math_test.cpp).
#pragma once

#include <bit>
#include <cstdint>

namespace troupe::models {

/// Returns the natural logarithm of a positive normal number.
[[gnu::always_inline]] constexpr float fast_log(float x) {
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); polynomial of Cephes' logf.
  const auto bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t shifted = bits - 0x3f3504f3; // bits of sqrt(1/2)
  const std::int32_t exponent = shifted >> 23;
  const float m = std::bit_cast<float>(
    static_cast<std::int32_t>((shifted & 0x007fffff) + 0x3f3504f3));
  const float e = static_cast<float>(exponent);
  const float r = m - 1.0F;
  const float z = r * r;
  float p = 7.0376836292e-2F;
  p = p * r - 1.1514610310e-1F;
  p = p * r + 1.1676998740e-1F;
  p = p * r - 1.2420140846e-1F;
  p = p * r + 1.4249322787e-1F;
  p = p * r - 1.6668057665e-1F;
  p = p * r + 2.0000714765e-1F;
  p = p * r - 2.4999993993e-1F;
  p = p * r + 3.3333331174e-1F;
  p = p * r * z;
  p = p - 2.12194440e-4F * e - 0.5F * z;
  return r + p + 0.693359375F * e;
}

/// Returns e^x; 0 below -87 (also for -inf), constant above 88.
[[gnu::always_inline]] constexpr float fast_exp(float x) {
  const float low = x < -87.0F ? -87.0F : x;
  const float clamped = low > 88.0F ? 88.0F : low;
  // Adding 1.5 * 2^23 rounds to the nearest integer.
  const float n = (clamped * 1.44269504088896341F + 12582912.0F) - 12582912.0F;
  const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float y = (p * r * r + r) + 1.0F;
  const std::int32_t scale_bits = (static_cast<std::int32_t>(n) + 127) << 23;
  const float scaled = y * std::bit_cast<float>(scale_bits);
  return x < -87.0F ? 0.0F : scaled;
}

} // namespace troupe::models
