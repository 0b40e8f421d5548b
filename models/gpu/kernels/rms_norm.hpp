// The residual connection and RMSNorm in one pass over a row: x += residual,
// y = x / sqrt(mean(x^2) + eps) * (weight + plus). The norm sees x as it is
// stored, which is what its gradient reads (rms_norm_backward.hpp).
//
// T rows of H elements, contiguous; one block per row.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::models::gpu {

template <class T>
struct RmsNorm {
  static constexpr int threads = 256;
  struct Shared {
    float part[threads];
  };

  T* x_TH = nullptr;              ///< unchanged without a residual
  const T* residual_TH = nullptr; ///< null: none
  const float* weight_H = nullptr;
  T* y_TH = nullptr;
  float* rstd_T = nullptr; ///< null: not kept
  std::int64_t width = 0;  ///< H
  float eps = 0;
  float plus = 0; ///< 1 for families that store weight - 1

  static std::int64_t blocks(std::int64_t rows) {
    return rows;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const std::int64_t row = block.index * width;
    T* x = x_TH + row;
    T* y = y_TH + row;
    block.each([&](int lane) {
      float squares = 0;
      for (std::int64_t j = lane; j < width; j += threads) {
        if (residual_TH != nullptr)
          store(x + j, to_float(x[j]) + to_float(residual_TH[row + j]));
        squares += to_float(x[j]) * to_float(x[j]);
      }
      shared.part[lane] = squares;
    });
    sum(block, shared.part);
    block.each([&](int lane) {
      const float mean = shared.part[0] / static_cast<float>(width);
      const float rstd = 1.0F / sqrtf(mean + eps);
      for (std::int64_t j = lane; j < width; j += threads)
        store(y + j, to_float(x[j]) * rstd * (weight_H[j] + plus));
      if (lane == 0 && rstd_T != nullptr)
        rstd_T[block.index] = rstd;
    });
  }
};

} // namespace troupe::models::gpu
