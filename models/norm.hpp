// Root-mean-square norm of rows: y = x / sqrt(mean(x^2) + eps) * weight.
// T rows of H floats each, contiguous.
#pragma once

#include "models/workspace.hpp"

#include <cstdint>

namespace troupe::models {

struct NormShape {
  std::int64_t rows = 0;  ///< T
  std::int64_t width = 0; ///< H
  float eps = 1e-6F;
};

/// `rstd_T`, where not null, receives 1 / sqrt(mean(x^2) + eps).
void rms_norm(const NormShape& shape, const float* x_TH, const float* weight_H,
              float* y_TH, float* rstd_T = nullptr);

/// Adds to `dx_TH` and `d_weight_H` given the gradient of y and what forward
/// saved. The sum over rows has a fixed order, whatever the threads.
void rms_norm_backward(const NormShape& shape, const float* dy_TH,
                       const float* x_TH, const float* weight_H,
                       const float* rstd_T, float* dx_TH, float* d_weight_H,
                       Workspace& workspace);

/// sum_N += the sum over the T rows of x [T, N], in a fixed order (gradients of
/// biases).
void add_column_sums(const float* x_TN, std::int64_t rows, std::int64_t width,
                     std::int64_t stride, float* sum_N, Workspace& workspace);

} // namespace troupe::models
