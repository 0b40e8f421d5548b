// The small kernels of generation, row by row: each output depends only on its
// own row (and its own sequence's cache), in one fixed order, so a token does
// not depend on what else is in the batch (I1, I2).
//
// D head dim.
#pragma once

#include <cstdint>

namespace troupe::models {

/// Rotates one head [D] by the cos and sin [F] of its position, F frequencies,
/// and scales it.
void rope_head(float* head, const float* cos, const float* sin,
               std::int64_t num_frequencies, std::int64_t head_dim,
               float scale);

/// One head's view of a sequence's cache (see kv_cache.hpp).
struct CachedHead {
  float* keys = nullptr;   ///< [D][capacity]
  float* values = nullptr; ///< [capacity][value_stride]
  std::int64_t capacity = 0;
  std::int64_t value_stride = 0;
  std::int64_t head_dim = 0;
  float cap = 0;           ///< scores become cap tanh(score / cap); 0: none
  std::int64_t window = 0; ///< last tokens that are seen; 0: all
};

/// Writes the key and value [D] of token `position`.
void append_to_cache(const CachedHead& cache, std::int64_t position,
                     const float* key, const float* value);

/// Computes out[D] = softmax(query . keys) values over the first `num_tokens`
/// tokens, or the last of them in the window; the query is already scaled.
/// `scores` has room for `capacity` floats.
void attend(const CachedHead& cache, const float* query,
            std::int64_t num_tokens, float* scores, float* out);

} // namespace troupe::models
