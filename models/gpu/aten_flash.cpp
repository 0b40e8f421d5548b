// Attention over packed sequences of aten_backend.hpp by a fused kernel that
// supports it: the operands of all sequences go into one call, and the results
// are copied back in fp32 to where the stack has them.
#include "models/gpu/aten_backend.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

FlashCall flash_call(const AtenViews& on, const AttentionShape& shape,
                     const FlashSequences& sequences, ConstTypedPtr qkv_TX) {
  const std::int64_t a = shape.heads;
  const std::int64_t g = shape.kv_heads;
  const at::Tensor heads
    = on.view(qkv_TX, {shape.cu_seqlens.back(), a + 2 * g, shape.head_dim})
        .to(on.options().flash->operands());
  at::Tensor seen = heads.narrow(1, a, 2 * g);
  if (!sequences.copies.empty())
    seen = seen.index_select(0, on.indices(sequences.key_tokens));
  return {heads.narrow(1, 0, a),
          seen.narrow(1, 0, g),
          seen.narrow(1, g, g),
          on.cached(sequences.query_starts),
          on.cached(sequences.key_starts),
          sequences.most_queries,
          sequences.most_keys,
          shape.score_scale(),
          shape.window > 0 ? shape.window - 1 : -1};
}

void flash_attention(const AtenViews& on, const AttentionShape& shape,
                     ConstTypedPtr qkv_TX, TypedPtr context_TX, float* lse_AT) {
  const std::int64_t tokens = shape.cu_seqlens.back();
  const FlashSequences sequences(shape);
  const FlashContext found
    = on.options().flash->forward(flash_call(on, shape, sequences, qkv_TX));
  on.view(context_TX, {tokens, shape.heads, shape.head_dim})
    .copy_(found.context_TAD);
  if (lse_AT != nullptr)
    on.view(lse_AT, {shape.heads, tokens}).copy_(found.lse_AT);
}

// The context is exact in the kernel's type, because the kernel computed it.
void flash_attention_backward(const AtenViews& on, const AttentionShape& shape,
                              ConstTypedPtr qkv_TX, ConstTypedPtr context_TX,
                              const float* lse_AT, ConstTypedPtr d_context_TX,
                              TypedPtr d_qkv_TX) {
  const std::int64_t tokens = shape.cu_seqlens.back();
  const std::int64_t a = shape.heads;
  const std::int64_t g = shape.kv_heads;
  const FlashSequences sequences(shape);
  const auto output = [&](ConstTypedPtr x_TX) {
    return on.view(x_TX, {tokens, a, shape.head_dim})
      .to(on.options().flash->operands());
  };
  const FlashGradients d = on.options().flash->backward(
    flash_call(on, shape, sequences, qkv_TX),
    {output(context_TX), on.view(lse_AT, {a, tokens})}, output(d_context_TX));
  const at::Tensor d_heads
    = on.view(d_qkv_TX, {tokens, a + 2 * g, shape.head_dim});
  d_heads.narrow(1, 0, a).copy_(d.queries_TAD);
  if (sequences.copies.empty()) {
    d_heads.narrow(1, a, g).copy_(d.keys_KGD);
    d_heads.narrow(1, a + g, g).copy_(d.values_KGD);
    return;
  }
  at::Tensor d_seen = d_heads.narrow(1, a, 2 * g);
  const at::Tensor d_keys = at::cat({d.keys_KGD, d.values_KGD}, 1);
  d_seen.copy_(d_keys.index_select(0, on.indices(sequences.token_keys)));
  for (const CopiedKeys& copied : sequences.copies)
    d_seen.narrow(0, copied.token, copied.count)
      .add_(d_keys.narrow(0, copied.key, copied.count));
}

} // namespace

void AtenBackend::attention(const AttentionShape& shape, ConstTypedPtr qkv_TX,
                            TypedPtr context_TX, float* lse_AT) {
  if (options_.flash != nullptr && flash_takes(shape))
    flash_attention(*this, shape, qkv_TX, context_TX, lse_AT);
  else
    plain_attention(shape, qkv_TX, context_TX, lse_AT);
}

void AtenBackend::attention_backward(
  const AttentionShape& shape, ConstTypedPtr qkv_TX, ConstTypedPtr context_TX,
  const float* lse_AT, ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX) {
  if (options_.flash != nullptr && flash_takes(shape))
    flash_attention_backward(*this, shape, qkv_TX, context_TX, lse_AT,
                             d_context_TX, d_qkv_TX);
  else
    plain_attention_backward(shape, qkv_TX, context_TX, lse_AT, d_context_TX,
                             d_qkv_TX);
}

} // namespace troupe::models
