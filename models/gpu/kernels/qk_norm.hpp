// RMS norms of heads in training, each head by itself, in place among the heads
// of a token, and their gradients. 32 lanes compute one head. The gradient of
// the weight is a sum over all heads in a fixed order (I8): each group of lanes
// adds up the heads of a chunk, and add_rows.hpp adds the chunks.
//
// T tokens, N heads of D elements.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::models::gpu {

/// The heads of a buffer: N adjacent ones of each token.
struct HeadRows {
  std::int64_t rows = 0;   ///< T
  std::int64_t stride = 0; ///< elements between tokens
  std::int64_t heads = 0;  ///< N
  std::int64_t dim = 0;    ///< D

  TROUPE_KERNEL std::int64_t count() const {
    return rows * heads;
  }
  TROUPE_KERNEL std::int64_t place(std::int64_t head) const {
    return head / heads * stride + head % heads * dim;
  }
};

/// Groups of lanes of a block, each with a sum of its own.
struct HeadLanes {
  static constexpr int threads = 256;
  static constexpr int lanes = 32; ///< of a head
  static constexpr int groups = threads / lanes;
};

/// Sums part over the lanes of each group to that of its first lane.
TROUPE_KERNEL void sum_groups(Block<HeadLanes::threads> block, float* part) {
  for (int half = HeadLanes::lanes / 2; half > 0; half /= 2)
    block.each([&](int lane) {
      if (lane % HeadLanes::lanes < half)
        part[lane] += part[lane + half];
    });
}

template <class T>
struct HeadNorm {
  static constexpr int threads = HeadLanes::threads;
  struct Shared {
    float part[threads];
  };

  HeadRows shape;
  const float* weight_D = nullptr;
  T* x = nullptr;
  T* raw_TX = nullptr; ///< receives the old x; null: not kept
  float eps = 0;
  float plus = 0; ///< 1 for families that store weight - 1

  static std::int64_t blocks(std::int64_t heads) {
    return pieces_of(heads, HeadLanes::groups);
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const std::int64_t first = block.index * HeadLanes::groups;
    block.each([&](int lane) {
      const std::int64_t head = first + lane / HeadLanes::lanes;
      const T* from = x + shape.place(head);
      float squares = 0;
      for (std::int64_t i = lane % HeadLanes::lanes;
           i < shape.dim && head < shape.count(); i += HeadLanes::lanes)
        squares += to_float(from[i]) * to_float(from[i]);
      shared.part[lane] = squares;
    });
    sum_groups(block, shared.part);
    block.each([&](int lane) {
      const std::int64_t head = first + lane / HeadLanes::lanes;
      T* to = x + shape.place(head);
      const float mean = shared.part[lane - lane % HeadLanes::lanes]
                         / static_cast<float>(shape.dim);
      const float rstd = 1.0F / sqrtf(mean + eps);
      for (std::int64_t i = lane % HeadLanes::lanes;
           i < shape.dim && head < shape.count(); i += HeadLanes::lanes) {
        if (raw_TX != nullptr)
          raw_TX[head * shape.dim + i] = to[i];
        store(to + i, to_float(to[i]) * rstd * (weight_D[i] + plus));
      }
    });
  }
};

template <class T>
struct HeadNormBackward {
  static constexpr int threads = HeadLanes::threads;
  static constexpr std::int64_t chunk = 64; ///< heads of a group of lanes
  struct Shared {
    float squares[threads];
    float dots[threads];
  };

  HeadRows shape;
  const float* weight_D = nullptr;
  const T* raw_TX = nullptr;
  T* dx = nullptr;              ///< of normed heads, becomes that of raw ones
  float* d_weight_CD = nullptr; ///< overwritten, C = chunks(T * N)
  float eps = 0;
  float plus = 0; ///< as in HeadNorm

  static std::int64_t blocks(std::int64_t heads) {
    return pieces_of(heads, chunk * HeadLanes::groups);
  }
  static std::int64_t chunks(std::int64_t heads) {
    return blocks(heads) * HeadLanes::groups;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    block.each([&](int lane) {
      float* d_weight = weight_of(block, lane);
      for (std::int64_t i = lane % HeadLanes::lanes; i < shape.dim;
           i += HeadLanes::lanes)
        d_weight[i] = 0;
    });
    for (std::int64_t i = 0; i < chunk; ++i)
      head(block, shared, i);
  }

private:
  TROUPE_KERNEL std::int64_t group_of(Block<threads> block, int lane) const {
    return block.index * HeadLanes::groups + lane / HeadLanes::lanes;
  }
  TROUPE_KERNEL float* weight_of(Block<threads> block, int lane) const {
    return d_weight_CD + group_of(block, lane) * shape.dim;
  }

  /// Computes the gradient of each group's i-th head. With n = x rstd and
  /// g = dy w: dx = (g - n mean(g n)) rstd.
  TROUPE_KERNEL void head(Block<threads> block, Shared& shared,
                          std::int64_t i) const {
    block.each([&](int lane) {
      const std::int64_t at = group_of(block, lane) * chunk + i;
      float squares = 0;
      float dots = 0;
      for (std::int64_t j = lane % HeadLanes::lanes;
           j < shape.dim && at < shape.count(); j += HeadLanes::lanes) {
        const float x = to_float(raw_TX[at * shape.dim + j]);
        squares += x * x;
        dots += to_float(dx[shape.place(at) + j]) * (weight_D[j] + plus) * x;
      }
      shared.squares[lane] = squares;
      shared.dots[lane] = dots;
    });
    sum_groups(block, shared.squares);
    sum_groups(block, shared.dots);
    block.each([&](int lane) {
      const std::int64_t at = group_of(block, lane) * chunk + i;
      const int first = lane - lane % HeadLanes::lanes;
      const auto width = static_cast<float>(shape.dim);
      const float rstd = 1.0F / sqrtf(shared.squares[first] / width + eps);
      const float common = shared.dots[first] * rstd * rstd * rstd / width;
      float* d_weight = weight_of(block, lane);
      for (std::int64_t j = lane % HeadLanes::lanes;
           j < shape.dim && at < shape.count(); j += HeadLanes::lanes) {
        const float x = to_float(raw_TX[at * shape.dim + j]);
        const float dy = to_float(dx[shape.place(at) + j]);
        store(dx + shape.place(at) + j,
              dy * (weight_D[j] + plus) * rstd - x * common);
        d_weight[j] += dy * x * rstd;
      }
    });
  }
};

} // namespace troupe::models::gpu
