// RMS norm of each head by itself (queries and keys of Qwen3 and Gemma 3), in
// place in a row-major buffer of tokens.
//
// T packed tokens, N heads, D head dim.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/kernels/workspace.hpp"

#include <cstdint>

namespace troupe::models {

/// Position of the heads in the buffer: N adjacent ones from the pointer on.
struct QkNormShape {
  std::int64_t rows = 0;     ///< T
  std::int64_t stride = 0;   ///< floats between tokens
  std::int64_t heads = 0;    ///< N
  std::int64_t head_dim = 0; ///< D
  float eps = 1e-6F;
  NormKind kind = NormKind::rms; ///< no LayerNorm
};

/// Computes x = x / rms(x) * weight (or 1 + weight). `raw_TX` [T, N*D], if not
/// null, receives the old x (backward needs it).
void qk_norm(const QkNormShape& shape, const float* weight_D, float* x,
             float* raw_TX);
/// Replaces dx, the gradient of the normed heads, by that of the raw heads;
/// adds to `d_weight_D` in a fixed order.
void qk_norm_backward(const QkNormShape& shape, const float* weight_D,
                      const float* raw_TX, float* dx, float* d_weight_D,
                      Workspace& workspace);

} // namespace troupe::models
