#include "models/internal/stack.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

namespace troupe::models::stack {

namespace {
constexpr std::int64_t stack_copy_grain = 1 << 16; // floats worth a thread
} // namespace

Sizes sizes(const ModelShape& shape, const PackedTokens& batch,
            const TensorPeers& peers) {
  const std::int64_t d = shape.head_dim;
  const std::int64_t gathered
    = peers.gathered_rows(batch.num_tokens()) * shape.hidden_size;
  return {batch.num_tokens(),
          shape.hidden_size,
          shape.num_heads,
          shape.num_heads * d,
          shape.num_kv_heads * d,
          (shape.num_heads + 2 * shape.num_kv_heads) * d,
          2 * shape.intermediate_size,
          static_cast<float>(shape.norm_eps),
          peers.own(batch.num_tokens()),
          peers.split() ? gathered / peers.size() : gathered,
          gathered};
}

AttentionShape attention_shape(const ModelShape& shape,
                               const PackedTokens& batch) {
  return {shape.num_heads, shape.num_kv_heads, shape.head_dim,
          batch.cu_seqlens};
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
  return {{w.gate, w.gate_bias, 0}, {w.up, w.up_bias, z.gate_up / 2}};
}

void copy(const float* from, float* to, std::int64_t count) {
  if (from == to)
    return;
  at::parallel_for(0, count, stack_copy_grain,
                   [&](std::int64_t begin, std::int64_t end) {
                     std::copy(from + begin, from + end, to + begin);
                   });
}

} // namespace troupe::models::stack
