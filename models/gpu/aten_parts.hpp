// Parts that the sources of aten_backend.hpp share: factors of norms, rows of a
// decoding pass, and forms of attention's scores.
#pragma once

#include "config/model/model_shape.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <span>

namespace troupe::models {

inline constexpr double aten_hidden_score
  = -std::numeric_limits<double>::infinity();

/// Returns what a norm multiplies by.
at::Tensor aten_weight(const at::Tensor& weight, NormKind kind);

/// Returns numbers of the host on the device (upload.hpp).
at::Tensor on_device(std::span<const std::int64_t> values, at::Device device);

/// Rows of a decoding pass, on the device.
struct AtenRows {
  at::Tensor ids_R;
  at::Tensor slots_R;
  at::Tensor positions_R;
  at::Tensor queries_RAD;
};

/// Heads of a decoding pass, normed and rotated.
struct AtenHeads {
  at::Tensor queries_RAD; ///< not scaled
  at::Tensor keys_RGD;
  at::Tensor values_RGD;
};

/// Returns cap tanh(scores / cap); the scores themselves where there is no cap.
at::Tensor aten_capped(const at::Tensor& scores, float cap);

/// Reshapes [A, L, ...] to [G, A / G * L, ...]: heads that share keys are
/// stacked.
at::Tensor aten_shared(const at::Tensor& heads, std::int64_t kv_heads);

} // namespace troupe::models
