#include "models/internal/stack.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

namespace troupe::models::stack {

namespace {
constexpr std::int64_t stack_copy_grain = 1 << 16; // floats worth a thread
} // namespace

Sizes sizes(const Transformer& model, const PackedTokens& batch,
            const TensorPeers& peers) {
  const ModelShape& shape = model.shape;
  const std::int64_t d = shape.head_dim;
  const std::int64_t gathered
    = peers.gathered_rows(batch.num_tokens()) * shape.hidden_size;
  return {batch.num_tokens(),
          shape.hidden_size,
          shape.num_heads,
          shape.num_heads * d,
          shape.num_kv_heads * d,
          (shape.num_heads + 2 * shape.num_kv_heads) * d,
          {batch.num_tokens(), shape.intermediate_size, shape.activation,
           shape.gated_mlp},
          static_cast<float>(shape.norm_eps),
          shape.norm,
          peers.own(batch.num_tokens()),
          peers.split() ? gathered / peers.size() : gathered,
          gathered,
          model.weights.operands};
}

AttentionShape attention_shape(const ModelShape& shape, const LayerWeights& w,
                               const PackedTokens& batch) {
  const auto scale = shape.query_scalar > 0
                       ? static_cast<float>(1.0 / std::sqrt(shape.query_scalar))
                       : 0.0F;
  return {shape.num_heads,
          shape.num_kv_heads,
          shape.head_dim,
          batch.cu_seqlens,
          batch.continues,
          scale,
          static_cast<float>(shape.attention_cap),
          w.window};
}

MoeShape moe_shape(const ModelShape& shape, const Sizes& z) {
  return {z.tokens, z.hidden, shape.experts_per_token, z.unit, z.operands};
}

std::array<HeadNorm, 2> head_norms(const LayerWeights& w,
                                   const ModelShape& shape, const Sizes& z) {
  const auto of = [&](std::int64_t heads) {
    return HeadNormShape{z.tokens, z.qkv, heads, shape.head_dim, z.eps};
  };
  return {HeadNorm{of(shape.num_heads), w.q_norm, 0, 0},
          HeadNorm{of(shape.num_kv_heads), w.k_norm, z.context,
                   z.tokens * z.context}};
}

std::vector<Piece> qkv_pieces(const LayerWeights& w, const Sizes& z) {
  if (w.qkv.defined())
    return {{w.qkv, {}, 0}};
  return {{w.q, w.q_bias, 0},
          {w.k, w.k_bias, z.context},
          {w.v, w.v_bias, z.context + z.kv}};
}

std::vector<Piece> mlp_pieces(const LayerWeights& w, const Sizes& z) {
  if (w.gate_up.defined())
    return {{w.gate_up, {}, 0}};
  if (!w.gate.defined())
    return {{w.up, w.up_bias, 0}};
  return {{w.gate, w.gate_bias, 0}, {w.up, w.up_bias, z.unit.width}};
}

void copy(const float* from, float* to, std::int64_t count) {
  if (from == to)
    return;
  at::parallel_for(0, count, stack_copy_grain,
                   [&](std::int64_t begin, std::int64_t end) {
                     std::copy(from + begin, from + end, to + begin);
                   });
}

void add(const float* a, const float* b, float* to, std::int64_t count) {
  at::parallel_for(0, count, stack_copy_grain,
                   [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
                     for (std::int64_t i = begin; i < end; ++i)
                       to[i] = a[i] + b[i];
                   });
}

} // namespace troupe::models::stack
