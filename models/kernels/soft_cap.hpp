// Gemma 2's soft cap, cap tanh(x / cap), for logits and attention scores.
#pragma once

#include "models/kernels/host_math.hpp"

#include <cstdint>

namespace troupe::models {

/// Returns tanh computed from e^2x; absolute error below 1e-6.
[[gnu::always_inline]] inline float soft_tanh(float x) {
  return 1.0F - 2.0F / (fast_exp(2.0F * x) + 1.0F);
}

/// Computes x = cap tanh(x / cap).
void cap_logits(float* x, std::int64_t count, float cap);

} // namespace troupe::models
