// The noise of invariant I2: one Gumbel number for each (seed, step, sample,
// position, vocabulary id), independent of the caller and the order. An id's
// number is word id % 4 of Philox block (sample, position, id / 4, 0) under key
// (seed, step), turned into u in (0, 1) and then -log(-log(u)).
#pragma once

#include "models/data/philox.hpp"

#include <cstdint>
#include <span>

namespace troupe::models {

/// Name of the vocabulary-wide row of noise for one drawn token.
struct DrawName {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t sample = 0;
  std::uint32_t position = 0; ///< index of the token in its sequence
};

/// Returns the Philox key of a draw. A seed below 2^32 is the first word
/// unchanged; the upper half of a larger one is folded in.
constexpr PhiloxKey philox_key(const DrawName& name) {
  const auto low = static_cast<std::uint32_t>(name.seed);
  const auto high = static_cast<std::uint32_t>(name.seed >> 32);
  return {low ^ (high * philox::weyl_0), name.step};
}

/// Fills `noise` with the numbers of ids first_id, first_id + 1, ...
/// @pre first_id % 4 == 0
void gumbel_noise(const DrawName& name, std::uint32_t first_id,
                  std::span<float> noise);

} // namespace troupe::models
