// RMS norms of queries and keys, in place in a row-major buffer of tokens: of
// each head by itself (Qwen3, Gemma 3), or of all heads of a token together
// (OLMo 2). With the latter a tp rank has some of the heads: it sums over them
// (`head_sums`), the ranks add their sums up, and the norm reads the total.
//
// T packed tokens, N heads, D head dim.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/kernels/workspace.hpp"

#include <cstdint>

namespace troupe::models {

/// Sums over the values of all heads of a token, on all tp ranks.
struct HeadSums {
  const float* squares_T = nullptr; ///< of x^2; null: each head by itself
  const float* dots_T = nullptr;    ///< of dy * weight * x; in backward
  std::int64_t count = 0;           ///< values that were added up
};

/// Position of the heads in the buffer: N adjacent ones from the pointer on.
struct QkNormShape {
  std::int64_t rows = 0;     ///< T
  std::int64_t stride = 0;   ///< floats between tokens
  std::int64_t heads = 0;    ///< N; 1 for all heads together
  std::int64_t head_dim = 0; ///< D; N*D for all heads together
  float eps = 1e-6F;
  NormKind kind = NormKind::rms; ///< no LayerNorm
  HeadSums sums = {};
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

/// Two buffers of rows of the same width.
struct RowPair {
  const float* a = nullptr;
  const float* b = nullptr;
  std::int64_t a_stride = 0; ///< floats between rows
  std::int64_t b_stride = 0;
};
/// Computes the sum over each token's N*D values of a * b, or of a * b * weight
/// (1 + weight), into `sums_T`. `weight` [N*D] may be null.
void head_sums(const QkNormShape& shape, const RowPair& rows,
               const float* weight, float* sums_T);

} // namespace troupe::models
