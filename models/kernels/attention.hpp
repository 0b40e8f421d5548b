// Causal attention with grouped key-value heads over packed sequences, each on
// its own or continuing another one. q, k and v are adjacent in one buffer, so
// that one product writes them and one product reads them.
//
// Shapes: T packed tokens, A heads, G key-value heads (A % G == 0), D head dim,
// X = (A + 2G) * D columns: A heads of q, then G of k, then G of v.
#pragma once

#include "config/base/dtype.hpp"
#include "models/kernels/workspace.hpp"

#include <cstdint>
#include <span>

namespace troupe::models {

struct AttentionShape {
  std::int64_t heads = 0;    ///< A
  std::int64_t kv_heads = 0; ///< G
  std::int64_t head_dim = 0; ///< D
  /// [N+1] token offsets of the sequences.
  std::span<const std::int64_t> cu_seqlens;
  /// [N] the sequence that each one continues (PackedTokens); empty: none does.
  std::span<const std::int32_t> continues = {};
  float scale = 0;         ///< factor of q k^T; 0: 1 / sqrt(D)
  float cap = 0;           ///< scores become cap tanh(score / cap); 0: none
  std::int64_t window = 0; ///< tokens that a token sees, itself included; 0:
                           ///< all
  /// Operand type of the products in a fused kernel (flash_attention.hpp); all
  /// other paths use fp32 operands regardless.
  DType operands = DType::f32;

  std::int64_t columns() const {
    return (heads + 2 * kv_heads) * head_dim;
  }
  float score_scale() const;
};

/// Computes context[T, A*D] = softmax(cap(q k^T scale), causal and in the
/// window) v. `lse_AT`, if not null, receives the log-sum-exp of each row's
/// scores.
void attention(const AttentionShape& shape, const float* qkv_TX, float* context,
               float* lse_AT = nullptr);

/// Overwrites d_qkv[T, X] with the gradient, given the gradient of context.
void attention_backward(const AttentionShape& shape, const float* qkv_TX,
                        const float* context, const float* lse_AT,
                        const float* d_context, float* d_qkv_TX);

} // namespace troupe::models
