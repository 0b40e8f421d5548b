// RMS norm of every head by itself (Qwen3's queries and keys), in place in a
// row-major buffer of tokens.
//
// T packed tokens, N heads, D head dim.
#pragma once

#include "models/workspace.hpp"

#include <cstdint>

namespace troupe::models {

/// Where the heads stand: N neighbours from the pointer on.
struct HeadNormShape {
  std::int64_t rows = 0;     ///< T
  std::int64_t stride = 0;   ///< floats between tokens
  std::int64_t heads = 0;    ///< N
  std::int64_t head_dim = 0; ///< D
  float eps = 1e-6F;
};

/// x becomes x / rms(x) * weight. `raw_TX` [T, N*D], where not null, receives
/// what x was (backward needs it).
void head_norm(const HeadNormShape& shape, const float* weight_D, float* x,
               float* raw_TX);
/// dx, the gradient of the normed heads, becomes that of the raw ones; adds to
/// `d_weight_D` in a fixed order.
void head_norm_backward(const HeadNormShape& shape, const float* weight_D,
                        const float* raw_TX, float* dx, float* d_weight_D,
                        Workspace& workspace);

} // namespace troupe::models
