// Norms of rows: y = x / sqrt(mean(x^2) + eps) * weight (or 1 + weight), and
// LayerNorm, y = (x - mean) / sqrt(var + eps) * weight + bias.
// T rows of H floats each, contiguous.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/kernels/workspace.hpp"

#include <cstdint>

namespace troupe::models {

struct NormShape {
  std::int64_t rows = 0;  ///< T
  std::int64_t width = 0; ///< H
  float eps = 1e-6F;
  NormKind kind = NormKind::rms;
};

/// A norm's parameters; `bias` is null except for LayerNorm.
struct NormWeights {
  const float* weight_H = nullptr;
  const float* bias_H = nullptr;
};
struct NormGrads {
  float* weight_H = nullptr;
  float* bias_H = nullptr;
};

/// Computes the norm of each row. `rstd_T`, if not null, receives one over the
/// root of each row's mean square (LayerNorm: variance), eps included.
void norm(const NormShape& shape, const float* x_TH, const NormWeights& weights,
          float* y_TH, float* rstd_T = nullptr);

/// Adds to `dx_TH` and to `grads`, given the gradient of y and what forward
/// saved. The sum over rows has a fixed order for any thread count.
void norm_backward(const NormShape& shape, const float* dy_TH,
                   const float* x_TH, const NormWeights& weights,
                   const float* rstd_T, float* dx_TH, const NormGrads& grads,
                   Workspace& workspace);

/// Computes sum_N += the sum over the T rows of x [T, N], in a fixed order
/// (gradients of biases).
void add_column_sums(const float* x_TN, std::int64_t rows, std::int64_t width,
                     std::int64_t stride, float* sum_N, Workspace& workspace);

} // namespace troupe::models
