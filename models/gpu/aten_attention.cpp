// Attention of aten_backend.hpp where no fused kernel supports it
// (aten_flash.cpp). Packed sequences run one by one; generation computes all
// sequences with one row at once, over the whole cache in place, and the others
// one by one.
#include "models/gpu/aten_backend.hpp"

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace troupe::models {

namespace {

using at::indexing::Slice;

constexpr double aten_hidden_score = -std::numeric_limits<double>::infinity();
constexpr std::int64_t aten_row_numbers
  = sizeof(DecodeToken) / sizeof(std::int32_t);

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

at::Tensor aten_capped(const at::Tensor& scores, float cap) {
  return cap > 0 ? at::tanh(scores / cap) * cap : scores;
}

/// Reshapes [A, L, ...] to [G, A / G * L, ...]: heads that share keys are
/// stacked.
at::Tensor aten_shared(const at::Tensor& heads, std::int64_t kv_heads) {
  return heads.reshape({kv_heads, -1, heads.size(2)});
}

} // namespace

at::Tensor AtenBackend::heads(const AttentionShape& shape, ConstTypedPtr qkv_TX,
                              std::size_t sequence, std::int64_t first_head,
                              std::int64_t count) const {
  const std::int64_t d = shape.head_dim;
  return view(
    qkv_TX + aten_start(shape, sequence) * shape.columns() + first_head * d,
    {count, aten_length(shape, sequence), d}, {{d, shape.columns(), 1}});
}

at::Tensor AtenBackend::keys_of(const AttentionShape& shape,
                                ConstTypedPtr qkv_TX, std::size_t sequence,
                                std::int64_t first_head) const {
  const at::Tensor own
    = heads(shape, qkv_TX, sequence, first_head, shape.kv_heads).to(at::kFloat);
  const std::int64_t continued = aten_continued(shape, sequence);
  if (continued < 0)
    return own;
  return at::cat({heads(shape, qkv_TX, static_cast<std::size_t>(continued),
                        first_head, shape.kv_heads)
                    .to(at::kFloat),
                  own},
                 1);
}

at::Tensor AtenBackend::hidden(const at::Tensor& positions_n, std::int64_t keys,
                               std::int64_t window) const {
  const at::Tensor key
    = at::arange(keys, at::TensorOptions(at::kLong).device(device_));
  const at::Tensor query = positions_n.unsqueeze(1);
  at::Tensor later = key > query;
  if (window > 0)
    later.logical_or_(key <= query - window);
  return later;
}

at::Tensor AtenBackend::masked_scores(const AttentionShape& shape,
                                      const at::Tensor& queries_ALD,
                                      const at::Tensor& keys_GKD) const {
  const std::int64_t length = queries_ALD.size(1);
  const std::int64_t keys = keys_GKD.size(1);
  at::Tensor scores = at::bmm(aten_shared(queries_ALD, shape.kv_heads),
                              keys_GKD.transpose(1, 2))
                        .reshape({shape.heads, length, keys})
                        .mul_(shape.score_scale());
  scores = aten_capped(scores, shape.cap);
  const at::Tensor positions = at::arange(
    keys - length, keys, at::TensorOptions(at::kLong).device(device_));
  return scores.masked_fill_(hidden(positions, keys, shape.window),
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
    const at::Tensor scores
      = masked_scores(shape, heads(shape, qkv_TX, s, 0, a).to(at::kFloat),
                      keys_of(shape, qkv_TX, s, a));
    const at::Tensor lse = at::logsumexp(scores, {2}, /*keepdim=*/true);
    const at::Tensor context = at::bmm(aten_shared(at::exp(scores - lse), g),
                                       keys_of(shape, qkv_TX, s, a + g));
    view(context_TX + start * a * d, {a, length, d}, {{d, a * d, 1}})
      .copy_(context.reshape({a, length, d}));
    if (lse_AT != nullptr)
      view(lse_AT + start, {a, length}, {{tokens, 1}}).copy_(lse.squeeze(2));
  }
}

// The part of a continued sequence is added to its gradient, which is already
// written because that sequence comes first.
void AtenBackend::add_keys(const AttentionShape& shape, TypedPtr d_qkv_TX,
                           std::size_t sequence, std::int64_t first_head,
                           const at::Tensor& d_keys_GKD) const {
  const std::int64_t length = aten_length(shape, sequence);
  const std::int64_t past = d_keys_GKD.size(1) - length;
  heads(shape, d_qkv_TX, sequence, first_head, shape.kv_heads)
    .copy_(d_keys_GKD.narrow(1, past, length));
  if (past > 0)
    heads(shape, d_qkv_TX,
          static_cast<std::size_t>(aten_continued(shape, sequence)), first_head,
          shape.kv_heads)
      .add_(d_keys_GKD.narrow(1, 0, past));
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
    const at::Tensor q = heads(shape, qkv_TX, s, 0, a).to(at::kFloat);
    const at::Tensor k = keys_of(shape, qkv_TX, s, a);
    const at::Tensor d_out = output(d_context_TX);
    const at::Tensor scores = masked_scores(shape, q, k);
    const at::Tensor p = at::exp(
      scores - view(lse_AT + start, {a, length, 1}, {{tokens, 1, 1}}));
    const at::Tensor dp
      = at::bmm(aten_shared(d_out, g),
                keys_of(shape, qkv_TX, s, a + g).transpose(1, 2))
          .reshape(p.sizes());
    const at::Tensor delta
      = (output(context_TX) * d_out).sum(2, /*keepdim=*/true);
    at::Tensor ds = p * (dp - delta) * shape.score_scale();
    if (shape.cap > 0)
      ds = at::where(p > 0, ds * (1 - (scores / shape.cap).square()), 0.0);
    const at::Tensor shared_ds = aten_shared(ds, g);
    heads(shape, d_qkv_TX, s, 0, a)
      .copy_(at::bmm(shared_ds, k).reshape({a, length, d}));
    add_keys(shape, d_qkv_TX, s, a,
             at::bmm(shared_ds.transpose(1, 2), aten_shared(q, g)));
    add_keys(shape, d_qkv_TX, s, a + g,
             at::bmm(aten_shared(p, g).transpose(1, 2), aten_shared(d_out, g)));
  }
}

void AtenBackend::decode_attention(const DecodeAttention& what,
                                   const DecodeTokens& tokens, KvCache& cache,
                                   TypedPtr qkv_RX, TypedPtr context_RX) {
  const auto count = static_cast<std::int64_t>(tokens.all.size());
  const std::int64_t d = what.head_dim;
  // the slot and the position of each row, which are adjacent
  const at::Tensor numbers_2R
    = at::for_blob(const_cast<std::int32_t*>(&tokens.all.data()->slot),
                   {2, count})
        .strides({{1, aten_row_numbers}})
        .options(at::TensorOptions(at::kInt).device(device_))
        .target_device(device_)
        .make_tensor()
        .to(at::kLong, /*non_blocking=*/false, /*copy=*/false,
            at::MemoryFormat::Contiguous);
  const at::Tensor slots = numbers_2R.select(0, 0);
  const at::Tensor positions = numbers_2R.select(0, 1);
  const auto norm
    = [&](std::int64_t first, std::int64_t heads, const float* norm_D) {
        if (norm_D == nullptr)
          return;
        at::Tensor x = view(qkv_RX + first * d, {count, heads, d},
                            {{what.columns(), d, 1}});
        x.mul_((x.square().mean(2, /*keepdim=*/true) + what.norm_eps).rsqrt())
          .mul_(aten_weight(view(norm_D, {d}), what.norm));
      };
  norm(0, what.heads, what.q_norm_D);
  norm(what.heads, what.kv_heads, what.k_norm_D);
  at::Tensor heads = view(qkv_RX, {count, what.heads + what.kv_heads, d},
                          {{what.columns(), d, 1}});
  if (what.rope != nullptr)
    heads = turned(heads, *what.rope, positions, /*backwards=*/false);
  const at::Tensor queries = heads.narrow(1, 0, what.heads) * what.scale;
  const std::int64_t head = cache.head_stride();
  at::Tensor keys_SGDC
    = view(cache.keys(what.layer, 0, 0),
           {cache.num_slots(), what.kv_heads, d, cache.capacity()},
           {{what.kv_heads * head, head, cache.capacity(), 1}});
  keys_SGDC.index_put_({slots, Slice(), Slice(), positions},
                       heads.narrow(1, what.heads, what.kv_heads));
  at::Tensor values_SGCD
    = view(cache.values(what.layer, 0, 0),
           {cache.num_slots(), what.kv_heads, cache.capacity(), d},
           {{what.kv_heads * head, head, cache.value_stride(), 1}});
  values_SGCD.index_put_({slots, Slice(), positions},
                         view(qkv_RX + (what.heads + what.kv_heads) * d,
                              {count, what.kv_heads, d},
                              {{what.columns(), d, 1}}));
  const AtenRows own{slots, positions, queries};
  const at::Tensor context = view(context_RX, {count, what.heads * d});
  attend_singles(what, tokens.groups, own, cache, context);
  for (const DecodeGroup& group : tokens.groups)
    if (group.tokens > 1)
      attend_group(what, group, own, cache, context);
}

// Slots without a row in this pass are computed too, from their first token,
// and discarded: the cache is read in place.
void AtenBackend::attend_singles(const DecodeAttention& what,
                                 std::span<const DecodeGroup> groups,
                                 const AtenRows& rows, KvCache& cache,
                                 const at::Tensor& context_RX) const {
  std::vector<std::int64_t> singles;
  std::int64_t keys = 1;
  for (const DecodeGroup& group : groups) {
    if (group.tokens != 1)
      continue;
    singles.push_back(static_cast<std::int64_t>(group.first));
    keys = std::max(keys, group.keys);
  }
  if (singles.empty())
    return;
  // The index would be a host-to-device copy: none if all rows are single.
  const bool all = singles.size() == groups.size();
  const at::Tensor chosen = all ? at::Tensor{} : indices(singles);
  const auto of_singles
    = [&](const at::Tensor& x) { return all ? x : x.index_select(0, chosen); };
  const at::Tensor slot_index = of_singles(rows.slots_R);
  const std::int64_t slots = cache.num_slots();
  const auto by_slot = [&](const at::Tensor& x, at::IntArrayRef sizes) {
    return at::zeros(sizes, x.options()).index_copy_(0, slot_index, x);
  };
  const std::int64_t g = what.kv_heads;
  const std::int64_t d = what.head_dim;
  const at::Tensor queries
    = by_slot(of_singles(rows.queries_RAD), {slots, what.heads, d});
  // Padding rows have a position after these keys, so a window would mask all.
  const at::Tensor positions
    = by_slot(of_singles(rows.positions_R).clamp_max(keys - 1), {slots});
  const at::Tensor cached_keys
    = view(cache.keys(what.layer, 0, 0), {slots * g, d, keys},
           {{cache.head_stride(), cache.capacity(), 1}});
  const at::Tensor cached_values
    = view(cache.values(what.layer, 0, 0), {slots * g, keys, d},
           {{cache.head_stride(), cache.value_stride(), 1}});
  at::Tensor scores = aten_capped(
    at::bmm(queries.reshape({slots * g, -1, d}), cached_keys), what.cap);
  scores = scores.reshape({slots, what.heads, keys})
             .masked_fill_(hidden(positions, keys, what.window).unsqueeze(1),
                           aten_hidden_score);
  const at::Tensor context
    = at::bmm(at::softmax(scores, 2).reshape({slots * g, -1, keys}),
              cached_values)
        .reshape({slots, what.heads * d});
  at::Tensor to = context_RX;
  if (all)
    at::index_select_out(to, context, 0, slot_index);
  else
    to.index_copy_(0, chosen, context.index_select(0, slot_index));
}

void AtenBackend::attend_group(const DecodeAttention& what,
                               const DecodeGroup& group, const AtenRows& rows,
                               KvCache& cache,
                               const at::Tensor& context_RX) const {
  const auto begin = static_cast<std::int64_t>(group.first);
  const auto count = static_cast<std::int64_t>(group.tokens);
  const std::int64_t g = what.kv_heads;
  const std::int64_t d = what.head_dim;
  const at::Tensor queries
    = rows.queries_RAD.narrow(0, begin, count).transpose(0, 1); // [A, n, D]
  const at::Tensor cached_keys
    = view(cache.keys(what.layer, group.slot, 0), {g, d, group.keys},
           {{cache.head_stride(), cache.capacity(), 1}});
  const at::Tensor cached_values
    = view(cache.values(what.layer, group.slot, 0), {g, group.keys, d},
           {{cache.head_stride(), cache.value_stride(), 1}});
  at::Tensor scores
    = aten_capped(at::bmm(aten_shared(queries, g), cached_keys), what.cap);
  scores = scores.reshape({what.heads, count, group.keys})
             .masked_fill_(hidden(rows.positions_R.narrow(0, begin, count),
                                  group.keys, what.window),
                           aten_hidden_score);
  const at::Tensor context
    = at::bmm(aten_shared(at::softmax(scores, 2), g), cached_values)
        .reshape({what.heads, count, d});
  at::Tensor to = context_RX.narrow(0, begin, count);
  to.copy_(context.transpose(0, 1).reshape({count, what.heads * d}));
}

} // namespace troupe::models
