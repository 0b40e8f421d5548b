// Joins what decode_attend.hpp computes for chunks of keys: the softmax over
// all of them.
//
// R tokens, A heads, D head dim, C chunks of keys; one block per token and
// head.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/host_math.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::models::gpu {

/// The shape of attention of generation.
struct AttendShape {
  std::int64_t heads = 0;    ///< A
  std::int64_t head_dim = 0; ///< D
  std::int64_t chunks = 0;   ///< C
  std::int64_t window = 0;   ///< last tokens that are seen; 0: all
  float scale = 1;           ///< factor of the queries
  float cap = 0;             ///< soft cap of the scores; 0: none
};

/// The softmax of a chunk, before it is divided by the sum.
struct ChunkSoftmax {
  float top = -INFINITY; ///< largest score
  float sum = 0;
};

template <class T>
struct JoinAttention {
  static constexpr int threads = 128;
  struct Shared {};

  AttendShape shape;
  const ChunkSoftmax* softmax_RAC = nullptr;
  const float* context_RACD = nullptr;
  const std::int64_t* rows_R = nullptr; ///< of `to_RX`; null: all, in order
  T* to_RX = nullptr;                   ///< [R, A*D]

  std::int64_t blocks(std::int64_t rows) const {
    return rows * shape.heads;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    const std::int64_t entry = block.index / shape.heads;
    const std::int64_t row = rows_R != nullptr ? rows_R[entry] : entry;
    const ChunkSoftmax* parts = softmax_RAC + block.index * shape.chunks;
    const float* from
      = context_RACD + block.index * shape.chunks * shape.head_dim;
    T* to = to_RX
            + (row * shape.heads + block.index % shape.heads) * shape.head_dim;
    block.each([&](int lane) {
      float top = -INFINITY;
      for (std::int64_t c = 0; c < shape.chunks; ++c)
        top = fmaxf(top, parts[c].top);
      for (std::int64_t d = lane; d < shape.head_dim; d += threads) {
        float total = 0;
        float added = 0;
        for (std::int64_t c = 0; c < shape.chunks; ++c) {
          if (parts[c].top == -INFINITY)
            continue;
          const float factor = fast_exp(parts[c].top - top);
          total += factor * parts[c].sum;
          added += factor * from[c * shape.head_dim + d];
        }
        store(to + d, added / total);
      }
    });
  }
};

} // namespace troupe::models::gpu
