#include "models/kernels/decode_kernels.hpp"

#include "models/kernels/host_math.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/soft_cap.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

/// Sixteen floats; the compiler maps them to the machine's registers.
using Vec16 [[gnu::vector_size(64), gnu::may_alias]] = float;
constexpr std::int64_t vec = 16;
constexpr std::int64_t wide = 4; // vectors in flight

/// Computes scores[t ... t + Count * 16) = query . keys of these tokens.
template <std::int64_t Count>
[[gnu::always_inline]] inline void score_block(const CachedHead& cache,
                                               const float* query,
                                               std::int64_t t, float* scores) {
  Vec16 sums[Count] = {};
  const float* key = cache.keys + t;
  for (std::int64_t d = 0; d < cache.head_dim; ++d) {
    const auto* keys = reinterpret_cast<const Vec16*>(key);
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < Count; ++i)
      sums[i] += query[d] * keys[i];
    key += cache.capacity;
  }
  auto* out = reinterpret_cast<Vec16*>(scores + t);
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < Count; ++i)
    out[i] = sums[i];
}

[[gnu::always_inline]] inline void cap_scores(float* scores, std::int64_t count,
                                              float cap) {
  const float inverse = 1.0F / cap;
#pragma omp simd
  for (std::int64_t t = 0; t < count; ++t)
    scores[t] = cap * soft_tanh(scores[t] * inverse);
}

/// Replaces scores by exp(score - max); returns their sum.
[[gnu::always_inline]] inline float exponentiate(float* scores,
                                                 std::int64_t count) {
  float top = scores[0];
#pragma omp simd reduction(max : top)
  for (std::int64_t t = 0; t < count; ++t)
    top = scores[t] > top ? scores[t] : top;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t t = 0; t < count; ++t) {
    scores[t] = fast_exp(scores[t] - top);
    sum += scores[t];
  }
  return sum;
}

/// Computes mixed[0 ... Count * 16) = sum over t in [begin, end) of weights[t]
/// values[t], times scale.
template <std::int64_t Count>
[[gnu::always_inline]] inline void
mix_block(const CachedHead& cache, const float* weights, std::int64_t first,
          std::int64_t begin, std::int64_t end, float scale, float* mixed) {
  Vec16 sums[Count] = {};
  const float* value = cache.values + begin * cache.value_stride + first;
  for (std::int64_t t = begin; t < end; ++t) {
    const auto* values = reinterpret_cast<const Vec16*>(value);
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < Count; ++i)
      sums[i] += weights[t] * values[i];
    value += cache.value_stride;
  }
  auto* out = reinterpret_cast<Vec16*>(mixed);
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < Count; ++i)
    out[i] = sums[i] * scale;
}

[[gnu::always_inline]] inline void
mix_values(const CachedHead& cache, const float* weights, std::int64_t begin,
           std::int64_t end, float scale, float* out) {
  alignas(64) float mixed[wide * vec];
  std::int64_t d = 0;
  while (d < cache.head_dim) {
    const std::int64_t left = cache.head_dim - d;
    const std::int64_t padded = cache.value_stride - d;
    if (padded >= wide * vec)
      mix_block<wide>(cache, weights, d, begin, end, scale, mixed);
    else if (padded >= 2 * vec)
      mix_block<2>(cache, weights, d, begin, end, scale, mixed);
    else
      mix_block<1>(cache, weights, d, begin, end, scale, mixed);
    const std::int64_t done
      = padded >= wide * vec ? wide * vec : (padded >= 2 * vec ? 2 * vec : vec);
    std::copy_n(mixed, std::min(left, done), out + d);
    d += done;
  }
}

} // namespace

void rope_head(float* head, const float* cos, const float* sin,
               std::int64_t num_frequencies, std::int64_t head_dim,
               float scale) {
  for (std::int64_t j = 0; j < num_frequencies; ++j) {
    const float a = head[j];
    const float b = head[j + num_frequencies];
    head[j] = (a * cos[j] - b * sin[j]) * scale;
    head[j + num_frequencies] = (b * cos[j] + a * sin[j]) * scale;
  }
  for (std::int64_t j = 2 * num_frequencies; j < head_dim; ++j)
    head[j] *= scale;
}

void append_to_cache(const CachedHead& cache, std::int64_t position,
                     const float* key, const float* value) {
  for (std::int64_t d = 0; d < cache.head_dim; ++d)
    cache.keys[d * cache.capacity + position] = key[d];
  std::copy_n(value, cache.head_dim,
              cache.values + position * cache.value_stride);
}

void attend(const CachedHead& cache, const float* query,
            std::int64_t num_tokens, float* scores, float* out) {
  on_best_isa([&]() __attribute__((always_inline)) {
    const std::int64_t first
      = cache.window > 0 ? std::max<std::int64_t>(0, num_tokens - cache.window)
                         : 0;
    std::int64_t t = first / vec * vec;
    for (; t + (wide - 1) * vec < num_tokens; t += wide * vec)
      score_block<wide>(cache, query, t, scores);
    for (; t < num_tokens; t += vec)
      score_block<1>(cache, query, t, scores);
    if (cache.cap > 0)
      cap_scores(scores + first, num_tokens - first, cache.cap);
    const float sum = exponentiate(scores + first, num_tokens - first);
    mix_values(cache, scores, first, num_tokens, 1.0F / sum, out);
  });
}

} // namespace troupe::models
