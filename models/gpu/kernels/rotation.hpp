// Rotary positions on GPUs, with the contract of models/kernels/rope.hpp, over
// the same table of cos and sin.
//
// P positions, D head dim, F frequencies, T tokens.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/rope.hpp"

#include <cstdint>

namespace troupe::models::gpu {

/// The table's rows in device memory.
struct Rotation {
  const float* cos_PF = nullptr;
  const float* sin_PF = nullptr;
  std::int64_t num_frequencies = 0; ///< F; 0: nothing is rotated

  static Rotation of(const RopeTable& table) {
    return {table.cos(0), table.sin(0), table.num_frequencies()};
  }
};

/// A rotated pair of numbers of a head.
struct RotatedPair {
  float low;
  float high;
};

/// Rotates element i of a head and its partner. `sign` -1 rotates backwards.
template <class T>
TROUPE_KERNEL RotatedPair rotated_pair(const Rotation& rotation,
                                       std::int64_t position, const T* head,
                                       std::int64_t i, float sign) {
  const float cos = rotation.cos_PF[position * rotation.num_frequencies + i];
  const float sin
    = sign * rotation.sin_PF[position * rotation.num_frequencies + i];
  const float a = to_float(head[i]);
  const float b = to_float(head[i + rotation.num_frequencies]);
  return {a * cos - b * sin, b * cos + a * sin};
}

/// Rotates every head of a row by its token's position, in place. One block per
/// token.
template <class T>
struct Rotate {
  static constexpr int threads = 256;
  struct Shared {};

  RopeShape shape;
  Rotation rotation;
  const std::int32_t* positions_T = nullptr;
  T* x = nullptr;
  bool backwards = false;

  static std::int64_t blocks(std::int64_t rows) {
    return rows;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    const int half = static_cast<int>(rotation.num_frequencies);
    const int pairs = static_cast<int>(shape.heads) * half;
    T* row = x + block.index * shape.stride;
    block.each([&](int lane) {
      const std::int64_t position = positions_T[block.index];
      for (int at = lane; at < pairs; at += threads) {
        T* head = row + at / half * shape.head_dim;
        const int i = at % half;
        const RotatedPair pair
          = rotated_pair(rotation, position, head, i, backwards ? -1.0F : 1.0F);
        store(head + i, pair.low);
        store(head + i + half, pair.high);
      }
    });
  }
};

} // namespace troupe::models::gpu
