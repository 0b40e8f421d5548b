// Rotary positions and the KV cache in one launch per layer: rotates queries in
// place, and writes rotated keys and values into the pages of their sequences.
// A page holds 256 tokens, [256, G, D] each for keys and values, as paged
// attention kernels read them.
//
// R tokens, A heads, G key-value heads, D head dim; one block per token.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/rotation.hpp"
#include "models/gpu/kernels/storage.hpp"

#include <cstdint>

namespace troupe::models::gpu {

inline constexpr std::int64_t page_tokens = 256;

/// A layer's pages, and which of them a sequence has.
template <class T>
struct PagedCache {
  T* keys = nullptr; ///< [pages, 256, G, D]
  T* values = nullptr;
  /// [slots, pages_per_slot]: the page of a sequence's tokens
  /// [256 i, 256 i + 256).
  const std::int32_t* table = nullptr;
  std::int64_t pages_per_slot = 0;

  /// Returns the row of a token in all pages, in tokens.
  TROUPE_KERNEL std::int64_t row(std::int64_t slot,
                                 std::int64_t position) const {
    const std::int64_t page
      = table[slot * pages_per_slot + position / page_tokens];
    return page * page_tokens + position % page_tokens;
  }
};

template <class T>
struct PagedAppend {
  static constexpr int threads = 256;
  struct Shared {};

  T* qkv_RX
    = nullptr; ///< [R, (A + 2G) D]; its keys and values stay as they are
  PagedCache<T> cache;
  Rotation rotation;
  const std::int32_t* slots_R = nullptr; ///< negative: padding, is skipped
  const std::int32_t* positions_R = nullptr;
  std::int64_t heads = 0;    ///< A
  std::int64_t kv_heads = 0; ///< G
  std::int64_t head_dim = 0; ///< D
  float scale = 1;           ///< factor of the queries

  static std::int64_t blocks(std::int64_t rows) {
    return rows;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    T* row = qkv_RX + block.index * (heads + 2 * kv_heads) * head_dim;
    block.each([&](int lane) {
      const std::int64_t slot = slots_R[block.index];
      const std::int64_t position = positions_R[block.index];
      if (slot < 0)
        return;
      turn(lane, row, row, heads, position, scale);
      const std::int64_t width = kv_heads * head_dim;
      const std::int64_t at = cache.row(slot, position) * width;
      const T* key = row + heads * head_dim;
      turn(lane, key, cache.keys + at, kv_heads, position, 1.0F);
      for (std::int64_t i = lane; i < width; i += threads)
        cache.values[at + i] = key[width + i];
    });
  }

  /// Writes the rotated and scaled heads of `from`, each element by one lane.
  TROUPE_KERNEL void turn(int lane, const T* from, T* to, std::int64_t count,
                          std::int64_t position, float factor) const {
    const int half = static_cast<int>(rotation.num_frequencies);
    for (int at = lane; at < count * half; at += threads) {
      const std::int64_t head = at / half * head_dim;
      const int i = at % half;
      const RotatedPair pair
        = rotated_pair(rotation, position, from + head, i, 1.0F);
      store(to + head + i, pair.low * factor);
      store(to + head + i + half, pair.high * factor);
    }
    const int rest = static_cast<int>(head_dim) - 2 * half; // is not rotated
    for (int at = lane; at < count * rest; at += threads) {
      const std::int64_t i = at / rest * head_dim + 2 * half + at % rest;
      store(to + i, to_float(from[i]) * factor);
    }
  }
};

} // namespace troupe::models::gpu
