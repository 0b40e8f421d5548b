// The gradient of RMSNorm. It is added to what came through the residual
// connection beside the norm. The gradient of the weight is a sum over rows in
// a fixed order (I8): each block adds up a chunk of rows, and add_rows.hpp adds
// the chunks.
//
// T rows of H elements, C chunks; one block per chunk.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"

#include <cstdint>

namespace troupe::models::gpu {

template <class T>
struct RmsNormBackward {
  static constexpr int threads = 256;
  static constexpr std::int64_t chunk_rows = 16;
  struct Shared {
    float part[threads];
  };

  const T* dy_TH = nullptr;
  const T* x_TH = nullptr;
  const float* weight_H = nullptr;
  const float* rstd_T = nullptr;
  T* dx_TH = nullptr;           ///< added to
  float* d_weight_CH = nullptr; ///< overwritten, C = blocks(T)
  std::int64_t rows = 0;        ///< T
  std::int64_t width = 0;       ///< H
  float plus = 0;               ///< as in RmsNorm

  static std::int64_t blocks(std::int64_t rows) {
    return pieces_of(rows, chunk_rows);
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    float* d_weight = d_weight_CH + block.index * width;
    block.each([&](int lane) {
      for (std::int64_t j = lane; j < width; j += threads)
        d_weight[j] = 0;
    });
    const std::int64_t first = block.index * chunk_rows;
    const std::int64_t last
      = first + chunk_rows < rows ? first + chunk_rows : rows;
    for (std::int64_t t = first; t < last; ++t)
      row(block, shared, t, d_weight);
  }

  TROUPE_KERNEL void row(Block<threads> block, Shared& shared, std::int64_t t,
                         float* d_weight) const {
    const T* dy = dy_TH + t * width;
    const T* x = x_TH + t * width;
    T* dx = dx_TH + t * width;
    block.each([&](int lane) {
      float dot = 0;
      for (std::int64_t j = lane; j < width; j += threads)
        dot += to_float(dy[j]) * (weight_H[j] + plus) * to_float(x[j]);
      shared.part[lane] = dot;
    });
    sum(block, shared.part);
    block.each([&](int lane) {
      const float rstd = rstd_T[t];
      const float common
        = shared.part[0] * rstd * rstd * rstd / static_cast<float>(width);
      for (std::int64_t j = lane; j < width; j += threads) {
        const float g = to_float(dy[j]);
        store(dx + j, to_float(dx[j]) + g * (weight_H[j] + plus) * rstd
                        - to_float(x[j]) * common);
        d_weight[j] += g * to_float(x[j]) * rstd;
      }
    });
  }
};

} // namespace troupe::models::gpu
