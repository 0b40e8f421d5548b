// Logit rows as a truncating sampler saw them: all but the ids that it kept
// drop out of the softmax. Removed logits become a finite number whose
// exponential is exactly 0, so the numbers and the gradient of a row
// (logits.hpp) are those of the kept ids alone: no product of 0 and infinity
// occurs, also where a tp rank keeps none.
//
// R rows, V vocabulary (of this rank).
#pragma once

#include <cstdint>
#include <span>

namespace troupe::models {

/// Its square, which the slope of a soft cap takes, is finite too.
inline constexpr float removed_logit = -1e15F;

struct KeptIds {
  std::int64_t rows = 0;        ///< R
  std::int64_t vocab = 0;       ///< V
  std::int64_t first_token = 0; ///< id of the first column
  /// [R + 1] row r keeps ids [offsets[r], offsets[r + 1]); none: all tokens.
  std::span<const std::int64_t> offsets_R1;
  std::span<const std::int32_t> ids; ///< those of other ranks are skipped
};

/// Removes the logits of all other ids, in place.
void keep_logits(const KeptIds& kept, float* logits_RV);

} // namespace troupe::models
