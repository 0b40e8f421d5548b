// What attention over packed sequences and that of generation share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>

namespace troupe::models {

inline constexpr double aten_hidden_score
  = -std::numeric_limits<double>::infinity();

/// Returns cap tanh(scores / cap); the scores themselves where there is no cap.
at::Tensor aten_capped(const at::Tensor& scores, float cap);

/// Reshapes [A, L, ...] to [G, A / G * L, ...]: heads that share keys are
/// stacked.
at::Tensor aten_shared(const at::Tensor& heads, std::int64_t kv_heads);

} // namespace troupe::models
