// Attention of generation of aten_backend.hpp: all sequences with one row at
// once; the others by a fused kernel (aten_prompts.hpp) or, where none takes
// them, one by one over copies of their pages.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/aten_own_decode.hpp"
#include "models/gpu/aten_pages.hpp"
#include "models/gpu/aten_parts.hpp"
#include "models/gpu/aten_prompts.hpp"
#include "models/gpu/single_rows.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace troupe::models {

namespace {

constexpr std::int64_t aten_row_numbers
  = sizeof(DecodeToken) / sizeof(std::int32_t);

/// Returns a b of a batch in fp32. Operands are rounded to the type of `b`,
/// which a GPU multiplies as it is.
at::Tensor aten_batched(const at::Tensor& a, const at::Tensor& b) {
  if (b.scalar_type() == at::kFloat)
    return at::bmm(a, b);
  const at::Tensor rounded = a.to(b.scalar_type());
  if (b.is_cuda())
    return at::bmm(rounded, b, at::kFloat);
  return at::bmm(rounded.to(at::kFloat), b.to(at::kFloat));
}

void attend_group(const AtenViews& on, const DecodeAttention& what,
                  const DecodeGroup& group, const AtenRows& rows,
                  KvCache& cache, const at::Tensor& context_RX) {
  const auto begin = static_cast<std::int64_t>(group.first);
  const auto count = static_cast<std::int64_t>(group.tokens);
  const std::int64_t g = what.kv_heads;
  const std::int64_t d = what.head_dim;
  const at::Tensor queries
    = rows.queries_RAD.narrow(0, begin, count).transpose(0, 1); // [A, n, D]
  const AtenCached of_slot
    = AtenPages(on.device(), what, cache)
        .gather(rows.slots_R.narrow(0, begin, 1), group.keys);
  at::Tensor scores = aten_capped(
    aten_batched(aten_shared(queries, g), of_slot.keys), what.cap);
  scores = scores.reshape({what.heads, count, group.keys})
             .masked_fill_(aten_hidden(rows.positions_R.narrow(0, begin, count),
                                       group.keys, what.window),
                           aten_hidden_score);
  const at::Tensor context
    = aten_batched(aten_shared(at::softmax(scores, 2), g), of_slot.values)
        .reshape({what.heads, count, d});
  at::Tensor to = context_RX.narrow(0, begin, count);
  to.copy_(context.transpose(0, 1).reshape({count, what.heads * d}));
}

void attend_prompts(const AtenViews& on, const DecodeAttention& what,
                    const DecodeTokens& tokens, const AtenHeads& heads,
                    KvCache& cache, TypedPtr context_RX) {
  const auto is_prompt = [](const DecodeGroup& g) { return g.tokens > 1; };
  if (std::ranges::none_of(tokens.groups, is_prompt))
    return;
  const auto count = static_cast<std::int64_t>(tokens.all.size());
  if (fuses_prompts(on.options(), what, cache))
    return attend_prompts_fused(
      on, what, tokens.groups, heads, cache,
      on.view(context_RX, {count, what.heads, what.head_dim}));
  AtenRows rows = aten_rows(on, tokens.all);
  rows.queries_RAD = heads.queries_RAD.to(at::kFloat) * what.scale;
  const at::Tensor context
    = on.view(context_RX, {count, what.heads * what.head_dim});
  for (const DecodeGroup& group : tokens.groups)
    if (is_prompt(group))
      attend_group(on, what, group, rows, cache, context);
}

/// Computes attention for rows that are alone of their sequences.
void attend_singles(const AtenViews& on, const DecodeAttention& what,
                    std::span<const DecodeGroup> groups, const AtenRows& rows,
                    KvCache& cache, const at::Tensor& context_RX) {
  const SingleRows singles(groups);
  if (singles.rows.empty())
    return;
  // The index would be a host-to-device copy: none if all rows are single.
  const at::Tensor chosen
    = singles.are_all ? at::Tensor{} : on.indices(singles.rows);
  const auto of_singles = [&](const at::Tensor& x) {
    return chosen.defined() ? x.index_select(0, chosen) : x;
  };
  const std::int64_t keys = singles.keys;
  const auto count = static_cast<std::int64_t>(singles.rows.size());
  const std::int64_t g = what.kv_heads;
  // Padding rows have a position after these keys, so a window would mask all.
  const at::Tensor positions = of_singles(rows.positions_R).clamp_max(keys - 1);
  const AtenCached of_slots = AtenPages(on.device(), what, cache)
                                .gather(of_singles(rows.slots_R), keys);
  at::Tensor scores = aten_capped(
    aten_batched(
      of_singles(rows.queries_RAD).reshape({count * g, -1, what.head_dim}),
      of_slots.keys),
    what.cap);
  scores
    = scores.reshape({count, what.heads, keys})
        .masked_fill_(aten_hidden(positions, keys, what.window).unsqueeze(1),
                      aten_hidden_score);
  const at::Tensor context
    = aten_batched(at::softmax(scores, 2).reshape({count * g, -1, keys}),
                   of_slots.values)
        .reshape({count, what.heads * what.head_dim});
  at::Tensor to = context_RX;
  if (chosen.defined())
    to.index_copy_(0, chosen, context.to(to.scalar_type()));
  else
    to.copy_(context);
}

} // namespace

// The numbers of each row are adjacent: id, slot and position.
AtenRows aten_rows(const AtenViews& on, std::span<const DecodeToken> tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const at::Tensor numbers_3R
    = on.view_of_ints(&tokens.data()->id, {aten_row_numbers, count},
                      {{1, aten_row_numbers}})
        .to(at::kLong, /*non_blocking=*/false, /*copy=*/false,
            at::MemoryFormat::Contiguous);
  return {numbers_3R.select(0, 0),
          numbers_3R.select(0, 1),
          numbers_3R.select(0, 2),
          {}};
}

void AtenBackend::decode_attention(const DecodeAttention& what,
                                   const DecodeTokens& tokens, KvCache& cache,
                                   TypedPtr qkv_RX, TypedPtr context_RX) {
  const auto count = static_cast<std::int64_t>(tokens.all.size());
  const std::int64_t d = what.head_dim;
  if (options_.own_kernels && takes_own_decode(what, cache, qkv_RX)) {
    own_decode(device_, what, tokens, cache, qkv_RX, context_RX);
    const at::Tensor heads
      = view(qkv_RX, {count, what.heads + 2 * what.kv_heads, d});
    return attend_prompts(
      *this, what, tokens,
      {heads.narrow(1, 0, what.heads),
       heads.narrow(1, what.heads, what.kv_heads),
       heads.narrow(1, what.heads + what.kv_heads, what.kv_heads)},
      cache, context_RX);
  }
  AtenRows own = aten_rows(*this, tokens.all);
  const at::Tensor& slots = own.slots_R;
  const at::Tensor& positions = own.positions_R;
  const auto norm
    = [&](std::int64_t first, std::int64_t heads, const float* norm_D) {
        if (norm_D == nullptr)
          return;
        const at::Tensor stored = view(qkv_RX + first * d, {count, heads, d},
                                       {{what.columns(), d, 1}});
        const at::Tensor x = stored.to(at::kFloat);
        x.mul_((x.square().mean(2, /*keepdim=*/true) + what.norm_eps).rsqrt())
          .mul_(aten_weight(view(norm_D, {d}), what.norm));
        if (stored.scalar_type() != at::kFloat)
          stored.copy_(x);
      };
  norm(0, what.heads, what.q_norm_D);
  norm(what.heads, what.kv_heads, what.k_norm_D);
  at::Tensor heads = wide(qkv_RX, {count, what.heads + what.kv_heads, d},
                          {{what.columns(), d, 1}});
  if (what.rope != nullptr)
    heads
      = aten_turned(*this, heads, *what.rope, positions, /*backwards=*/false);
  own.queries_RAD = heads.narrow(1, 0, what.heads) * what.scale;
  const at::Tensor keys = heads.narrow(1, what.heads, what.kv_heads);
  const at::Tensor values
    = view(qkv_RX + (what.heads + what.kv_heads) * d, {count, what.kv_heads, d},
           {{what.columns(), d, 1}});
  AtenPages(device_, what, cache).write(slots, positions, keys, values);
  attend_singles(*this, what, tokens.groups, own, cache,
                 view(context_RX, {count, what.heads * d}));
  attend_prompts(*this, what, tokens,
                 {heads.narrow(1, 0, what.heads), keys, values}, cache,
                 context_RX);
}

} // namespace troupe::models
