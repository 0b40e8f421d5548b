// The unit in the middle of an MLP: act(gate) * up, or act(up) if there is no
// gate. silu(x) = x / (1 + e^-x); gelu(x) = x (1 + erf(x / sqrt(2))) / 2, or in
// the tanh form of GPT-2 and Gemma, x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
// / 2.
//
// T rows, I intermediate; gate and up are adjacent, [T, 2I].
#pragma once

#include "config/model/model_shape.hpp"

#include <cstdint>

namespace troupe::models {

struct MlpShape {
  std::int64_t rows = 0;  ///< T
  std::int64_t width = 0; ///< I
  Activation activation = Activation::silu;
  bool gated = true;

  std::int64_t columns() const { ///< columns of the input
    return gated ? 2 * width : width;
  }
};

/// Computes act[T, I] from in[T, columns].
void mlp_unit(const MlpShape& shape, const float* in, float* act);
/// Overwrites `in` with its gradient, given d_act [T, I], and d_act with act
/// (which the gradient of the down projection needs).
void mlp_unit_backward(const MlpShape& shape, float* in, float* d_act);

} // namespace troupe::models
