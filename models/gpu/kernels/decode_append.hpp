// All that precedes attention in generation, in one launch per layer: norms and
// rotates the heads of queries and keys in place, and writes these keys and the
// values to the cache.
//
// R tokens, A heads, G key-value heads, D head dim; one block per token and
// head of qkv.
#pragma once

#include "models/gpu/kernels/paged_cache.hpp"
#include "models/gpu/kernels/rotation.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/decode_token.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::models::gpu {

/// The norms of heads, if the family has them.
struct HeadNorms {
  const float* q_D = nullptr;
  const float* k_D = nullptr;
  float eps = 0;
  float plus = 0; ///< 1 for families that store weight - 1
};

template <class T>
struct DecodeAppend {
  static constexpr int threads = 128;
  static constexpr int most_dim = 256;
  struct Shared {
    float part[threads];
    float head[most_dim];
  };

  T* qkv_RX = nullptr; ///< [R, (A + 2G) D]; values stay as they are
  const DecodeToken* tokens = nullptr;
  PagedCache<T> cache;
  Rotation rotation;
  HeadNorms norms;
  std::int64_t heads = 0;    ///< A
  std::int64_t head_dim = 0; ///< D, at most `most_dim`

  std::int64_t blocks(std::int64_t rows) const {
    return rows * (heads + 2 * cache.heads);
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const std::int64_t per_row = heads + 2 * cache.heads;
    const DecodeToken token = tokens[block.index / per_row];
    const std::int64_t at = block.index % per_row;
    T* head = qkv_RX + block.index * head_dim;
    const bool is_query = at < heads;
    const bool is_key = !is_query && at < heads + cache.heads;
    const float* weight_D = is_query ? norms.q_D : is_key ? norms.k_D : nullptr;
    block.each([&](int lane) {
      float squares = 0;
      for (std::int64_t i = lane; i < head_dim; i += threads) {
        shared.head[i] = to_float(head[i]);
        squares += shared.head[i] * shared.head[i];
      }
      shared.part[lane] = squares;
    });
    sum(block, shared.part);
    block.each([&](int lane) {
      if (weight_D == nullptr)
        return;
      const float mean = shared.part[0] / static_cast<float>(head_dim);
      const float rstd = 1.0F / sqrtf(mean + norms.eps);
      for (std::int64_t i = lane; i < head_dim; i += threads)
        shared.head[i] *= rstd * (weight_D[i] + norms.plus);
    });
    const std::int64_t kv_head = (at - heads) % cache.heads;
    T* to = is_query ? head
            : is_key ? cache.key(token.slot, token.position, kv_head)
                     : cache.value(token.slot, token.position, kv_head);
    const std::int64_t stride = is_key ? cache.page_tokens : 1;
    block.each([&](int lane) {
      for (std::int64_t i = lane; i < head_dim; i += threads) {
        const float x = is_query || is_key
                          ? rotated(shared.head, token.position, i)
                          : shared.head[i];
        store(to + i * stride, x);
        if (is_key)
          store(head + i, x);
      }
    });
  }

  /// Returns element i of a head after its rotation.
  TROUPE_KERNEL float rotated(const float* head, std::int64_t position,
                              std::int64_t i) const {
    const std::int64_t half = rotation.num_frequencies;
    if (i >= 2 * half)
      return head[i];
    const RotatedPair pair
      = rotated_pair(rotation, position, head, i < half ? i : i - half, 1.0F);
    return i < half ? pair.low : pair.high;
  }
};

} // namespace troupe::models::gpu
