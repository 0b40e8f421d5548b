// The gated unit of LLaMA's MLP: a = silu(g) * u, silu(x) = x / (1 + e^-x).
// T rows; gate and up stand beside each other, [T, 2I].
#pragma once

#include <cstdint>

namespace troupe::models {

/// act[T, I] from gate_up[T, 2I].
void swiglu(std::int64_t rows, std::int64_t width, const float* gate_up,
            float* act);
/// Overwrites gate_up with its gradient given d_act [T, I], and d_act with act
/// (which the gradient of the down projection needs).
void swiglu_backward(std::int64_t rows, std::int64_t width, float* gate_up,
                     float* d_act);

} // namespace troupe::models
