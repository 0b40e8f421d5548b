// Causal attention with grouped key-value heads over packed sequences, each
// alone or after one that it continues. q, k, v stand beside each other in one
// buffer, so that one product makes and one consumes them.
//
// Shapes: T packed tokens, A heads, G key-value heads (A % G == 0), D head dim,
// X = (A + 2G) * D columns: A heads of q, then G of k, then G of v.
#pragma once

#include "config/dtype.hpp"
#include "models/workspace.hpp"

#include <cstdint>
#include <span>

namespace troupe::models {

struct AttentionShape {
  std::int64_t heads = 0;    ///< A
  std::int64_t kv_heads = 0; ///< G
  std::int64_t head_dim = 0; ///< D
  /// [N+1] token offsets of the sequences.
  std::span<const std::int64_t> cu_seqlens;
  /// [N] the sequence that each continues (PackedTokens); empty: none does.
  std::span<const std::int32_t> continues = {};
  float scale = 0;         ///< of q k^T; 0: 1 / sqrt(D)
  float cap = 0;           ///< scores become cap tanh(score / cap); 0: none
  std::int64_t window = 0; ///< tokens a token sees, itself included; 0: all
  /// Of products, where a fused kernel computes them (flash_attention.hpp); the
  /// other ways take fp32 ones whatever stands here.
  DType operands = DType::f32;

  std::int64_t columns() const {
    return (heads + 2 * kv_heads) * head_dim;
  }
  float score_scale() const;
};

/// context[T, A*D] = softmax(cap(q k^T scale), causal and in the window) v.
/// `lse_AT`, where not null, receives log-sum-exp of each row's scores.
void attention(const AttentionShape& shape, const float* qkv_TX, float* context,
               float* lse_AT = nullptr);

/// d_qkv[T, X] (overwritten) from the gradient of context.
void attention_backward(const AttentionShape& shape, const float* qkv_TX,
                        const float* context, const float* lse_AT,
                        const float* d_context, float* d_qkv_TX);

} // namespace troupe::models
