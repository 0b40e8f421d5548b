// Attention over packed sequences of aten_backend.hpp, one after the other,
// where no fused kernel supports it (aten_flash.cpp).
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/aten_parts.hpp"

#include <ATen/ATen.h>

#include <vector>

namespace troupe::models {

namespace {

std::int64_t aten_start(const AttentionShape& shape, std::size_t sequence) {
  return shape.cu_seqlens[sequence];
}

/// Returns the sequences that have tokens.
std::vector<std::size_t> aten_sequences(const AttentionShape& shape) {
  std::vector<std::size_t> sequences;
  for (std::size_t s = 0; s + 1 < shape.cu_seqlens.size(); ++s)
    if (shape.cu_seqlens[s] < shape.cu_seqlens[s + 1])
      sequences.push_back(s);
  return sequences;
}

std::int64_t aten_length(const AttentionShape& shape, std::size_t sequence) {
  return shape.cu_seqlens[sequence + 1] - shape.cu_seqlens[sequence];
}

/// Returns the sequence that this one continues, or -1.
std::int64_t aten_continued(const AttentionShape& shape, std::size_t sequence) {
  return shape.continues.empty() ? -1 : shape.continues[sequence];
}

/// Returns heads of q, k or v of one sequence: [heads, L, D].
at::Tensor packed_heads(const AtenViews& on, const AttentionShape& shape,
                        ConstTypedPtr qkv_TX, std::size_t sequence,
                        std::int64_t first_head, std::int64_t count) {
  const std::int64_t d = shape.head_dim;
  return on.view(
    qkv_TX + aten_start(shape, sequence) * shape.columns() + first_head * d,
    {count, aten_length(shape, sequence), d}, {{d, shape.columns(), 1}});
}

/// Returns keys or values of a sequence and what it continues: [G, K, D].
at::Tensor packed_keys(const AtenViews& on, const AttentionShape& shape,
                       ConstTypedPtr qkv_TX, std::size_t sequence,
                       std::int64_t first_head) {
  const at::Tensor own
    = packed_heads(on, shape, qkv_TX, sequence, first_head, shape.kv_heads)
        .to(at::kFloat);
  const std::int64_t continued = aten_continued(shape, sequence);
  if (continued < 0)
    return own;
  return at::cat(
    {packed_heads(on, shape, qkv_TX, static_cast<std::size_t>(continued),
                  first_head, shape.kv_heads)
       .to(at::kFloat),
     own},
    1);
}

// The part of a continued sequence is added to its gradient, which is already
// written because that sequence comes first.
void add_packed_keys(const AtenViews& on, const AttentionShape& shape,
                     TypedPtr d_qkv_TX, std::size_t sequence,
                     std::int64_t first_head, const at::Tensor& d_keys_GKD) {
  const std::int64_t length = aten_length(shape, sequence);
  const std::int64_t past = d_keys_GKD.size(1) - length;
  packed_heads(on, shape, d_qkv_TX, sequence, first_head, shape.kv_heads)
    .copy_(d_keys_GKD.narrow(1, past, length));
  if (past > 0)
    packed_heads(on, shape, d_qkv_TX,
                 static_cast<std::size_t>(aten_continued(shape, sequence)),
                 first_head, shape.kv_heads)
      .add_(d_keys_GKD.narrow(1, 0, past));
}

} // namespace

at::Tensor aten_capped(const at::Tensor& scores, float cap) {
  return cap > 0 ? at::tanh(scores / cap) * cap : scores;
}

at::Tensor aten_shared(const at::Tensor& heads, std::int64_t kv_heads) {
  return heads.reshape({kv_heads, -1, heads.size(2)});
}

// Not exp(scores - lse), where all weights of a row would be off by the
// rounding of a large log-sum-exp.
AtenContext aten_attend(const at::Tensor& scores_ALK,
                        const at::Tensor& values_GKD) {
  const std::int64_t d = values_GKD.size(2);
  const at::Tensor lse = at::logsumexp(scores_ALK, {2}, /*keepdim=*/true);
  const at::Tensor context = at::bmm(
    aten_shared(at::softmax(scores_ALK, 2), values_GKD.size(0)), values_GKD);
  return {context.reshape({scores_ALK.size(0), scores_ALK.size(1), d}), lse};
}

AtenAttendedGrads aten_attend_backward(const AttentionShape& shape,
                                       const AtenAttended& read,
                                       const AtenContext& found,
                                       const at::Tensor& d_context_ALD) {
  const std::int64_t g = shape.kv_heads;
  const at::Tensor p = at::exp(read.scores_ALK - found.lse_AL1);
  const at::Tensor dp
    = at::bmm(aten_shared(d_context_ALD, g), read.values_GKD.transpose(1, 2))
        .reshape(p.sizes());
  const at::Tensor delta
    = (found.context_ALD * d_context_ALD).sum(2, /*keepdim=*/true);
  at::Tensor ds = p * (dp - delta) * shape.score_scale();
  if (shape.cap > 0)
    ds = at::where(p > 0, ds * (1 - (read.scores_ALK / shape.cap).square()),
                   0.0);
  const at::Tensor shared_ds = aten_shared(ds, g);
  return {
    at::bmm(shared_ds, read.keys_GKD).reshape(read.queries_ALD.sizes()),
    at::bmm(shared_ds.transpose(1, 2), aten_shared(read.queries_ALD, g)),
    at::bmm(aten_shared(p, g).transpose(1, 2), aten_shared(d_context_ALD, g))};
}

at::Tensor aten_hidden(const at::Tensor& positions_n, std::int64_t keys,
                       std::int64_t window) {
  const at::Tensor key = at::arange(keys, positions_n.options());
  const at::Tensor query = positions_n.unsqueeze(1);
  at::Tensor later = key > query;
  if (window > 0)
    later.logical_or_(key <= query - window);
  return later;
}

at::Tensor aten_masked_scores(const AttentionShape& shape,
                              const at::Tensor& queries_ALD,
                              const at::Tensor& keys_GKD) {
  const std::int64_t length = queries_ALD.size(1);
  const std::int64_t keys = keys_GKD.size(1);
  at::Tensor scores = at::bmm(aten_shared(queries_ALD, shape.kv_heads),
                              keys_GKD.transpose(1, 2))
                        .reshape({shape.heads, length, keys})
                        .mul_(shape.score_scale());
  scores = aten_capped(scores, shape.cap);
  const at::Tensor positions
    = at::arange(keys - length, keys, queries_ALD.options().dtype(at::kLong));
  return scores.masked_fill_(aten_hidden(positions, keys, shape.window),
                             aten_hidden_score);
}

void AtenBackend::plain_attention(const AttentionShape& shape,
                                  ConstTypedPtr qkv_TX, TypedPtr context_TX,
                                  float* lse_AT) const {
  const std::int64_t a = shape.heads;
  const std::int64_t g = shape.kv_heads;
  const std::int64_t d = shape.head_dim;
  const std::int64_t tokens = shape.cu_seqlens.back();
  for (const std::size_t s : aten_sequences(shape)) {
    const std::int64_t start = aten_start(shape, s);
    const std::int64_t length = aten_length(shape, s);
    const at::Tensor scores = aten_masked_scores(
      shape, packed_heads(*this, shape, qkv_TX, s, 0, a).to(at::kFloat),
      packed_keys(*this, shape, qkv_TX, s, a));
    const AtenContext found
      = aten_attend(scores, packed_keys(*this, shape, qkv_TX, s, a + g));
    view(context_TX + start * a * d, {a, length, d}, {{d, a * d, 1}})
      .copy_(found.context_ALD);
    if (lse_AT != nullptr)
      view(lse_AT + start, {a, length}, {{tokens, 1}})
        .copy_(found.lse_AL1.squeeze(2));
  }
}

void AtenBackend::plain_attention_backward(
  const AttentionShape& shape, ConstTypedPtr qkv_TX, ConstTypedPtr context_TX,
  const float* lse_AT, ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX) const {
  const std::int64_t a = shape.heads;
  const std::int64_t g = shape.kv_heads;
  const std::int64_t d = shape.head_dim;
  const std::int64_t tokens = shape.cu_seqlens.back();
  for (const std::size_t s : aten_sequences(shape)) {
    const std::int64_t start = aten_start(shape, s);
    const std::int64_t length = aten_length(shape, s);
    const auto output = [&](ConstTypedPtr x_TX) {
      return wide(x_TX + start * a * d, {a, length, d}, {{d, a * d, 1}});
    };
    AtenAttended read{
      packed_heads(*this, shape, qkv_TX, s, 0, a).to(at::kFloat),
      packed_keys(*this, shape, qkv_TX, s, a),
      packed_keys(*this, shape, qkv_TX, s, a + g),
      {}};
    read.scores_ALK
      = aten_masked_scores(shape, read.queries_ALD, read.keys_GKD);
    const AtenAttendedGrads grads = aten_attend_backward(
      shape, read,
      {output(context_TX),
       view(lse_AT + start, {a, length, 1}, {{tokens, 1, 1}})},
      output(d_context_TX));
    packed_heads(*this, shape, d_qkv_TX, s, 0, a).copy_(grads.queries_ALD);
    add_packed_keys(*this, shape, d_qkv_TX, s, a, grads.keys_GKD);
    add_packed_keys(*this, shape, d_qkv_TX, s, a + g, grads.values_GKD);
  }
}

} // namespace troupe::models
