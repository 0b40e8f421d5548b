// Parts that the sources of aten_backend.hpp share: factors of norms, rows of a
// decoding pass, and forms of attention's scores.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/gpu/aten_views.hpp"
#include "models/kernels/attention.hpp"
#include "models/kernels/decode_attention.hpp"

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

AtenRows aten_rows(const AtenViews& on, std::span<const DecodeToken> tokens);

/// Returns heads rotated to positions of their rows.
at::Tensor aten_turned(const AtenViews& on, const at::Tensor& heads_TND,
                       const RopeTable& table, const at::Tensor& positions_T,
                       bool backwards);

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

/// Returns the mask [n, keys] of queries at positions [n]; true where hidden.
at::Tensor aten_hidden(const at::Tensor& positions_n, std::int64_t keys,
                       std::int64_t window);
/// Returns the scores [A, L, K] of the last L of K tokens; -inf where masked.
at::Tensor aten_masked_scores(const AttentionShape& shape,
                              const at::Tensor& queries_ALD,
                              const at::Tensor& keys_GKD);

/// Result of attention; heads first, in fp32.
struct AtenContext {
  at::Tensor context_ALD;
  at::Tensor lse_AL1; ///< log-sum-exp of scores
};
AtenContext aten_attend(const at::Tensor& scores_ALK,
                        const at::Tensor& values_GKD);

/// Operands of attention and its scores, in fp32.
struct AtenAttended {
  at::Tensor queries_ALD;
  at::Tensor keys_GKD;
  at::Tensor values_GKD;
  at::Tensor scores_ALK; ///< -inf where masked
};
struct AtenAttendedGrads {
  at::Tensor queries_ALD;
  at::Tensor keys_GKD;
  at::Tensor values_GKD;
};
AtenAttendedGrads aten_attend_backward(const AttentionShape& shape,
                                       const AtenAttended& read,
                                       const AtenContext& found,
                                       const at::Tensor& d_context_ALD);

} // namespace troupe::models
