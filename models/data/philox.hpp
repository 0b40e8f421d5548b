// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
// 3"): 128 random bits as a pure function of a 64-bit key and a 128-bit
// counter. Invariant I2 relies on it: a draw depends on names, not on order.
#pragma once

#include <array>
#include <cstdint>

namespace troupe::models {

using PhiloxKey = std::array<std::uint32_t, 2>;
using PhiloxBlock = std::array<std::uint32_t, 4>;

namespace philox {

inline constexpr std::uint32_t multiplier_0 = 0xD2511F53;
inline constexpr std::uint32_t multiplier_1 = 0xCD9E8D57;
inline constexpr std::uint32_t weyl_0 = 0x9E3779B9; // golden ratio
inline constexpr std::uint32_t weyl_1 = 0xBB67AE85; // sqrt(3) - 1
inline constexpr int num_rounds = 10;

} // namespace philox

/// Returns the four words of block `counter` under `key`.
constexpr PhiloxBlock philox4x32_10(PhiloxKey key, PhiloxBlock counter) {
  for (int round = 0; round < philox::num_rounds; ++round) {
    const std::uint64_t product_0
      = std::uint64_t{philox::multiplier_0} * counter[0];
    const std::uint64_t product_1
      = std::uint64_t{philox::multiplier_1} * counter[2];
    counter
      = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0],
         static_cast<std::uint32_t>(product_1),
         static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
         static_cast<std::uint32_t>(product_0)};
    key[0] += philox::weyl_0;
    key[1] += philox::weyl_1;
  }
  return counter;
}

/// Returns u in [2^-24, 1 - 2^-24]: the upper 23 bits plus a half, so that both
/// logarithms of Gumbel noise are finite.
constexpr float open_unit(std::uint32_t word) {
  return (static_cast<float>(static_cast<std::int32_t>(word >> 9)) + 0.5F)
         * 0x1p-23F;
}

} // namespace troupe::models
