#include "models/gpu/flash_attention.hpp"

#include "models/gpu/fixed_order.hpp"

#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

namespace troupe::models {

namespace {

constexpr std::int64_t flash_vector = 8; // elements of a head per vector
constexpr std::int64_t flash_longest_head = 256;

class AtenFlash final : public FlashKernel {
public:
  at::ScalarType operands() const override {
    return at::kBFloat16;
  }

  // Causal is expressed as a window without keys after the query. With the
  // causal flag the kernel would treat sequences of one token differently.
  FlashContext forward(const FlashCall& call) const override {
    const auto found = at::_flash_attention_forward(
      call.queries_TAD, call.keys_KGD, call.values_KGD, call.query_starts,
      call.key_starts, call.most_queries, call.most_keys, /*dropout_p=*/0.0,
      /*is_causal=*/false, /*return_debug_mask=*/false, call.scale,
      call.seen_before, /*window_size_right=*/0);
    return {std::get<0>(found), std::get<1>(found)};
  }

  FlashGradients backward(const FlashCall& call, const FlashContext& found,
                          const at::Tensor& d_context_TAD) const override {
    const FixedOrder order; // for what blocks of keys add to a query
    const at::Tensor no_dropout
      = at::empty({2}, call.queries_TAD.options().dtype(at::kUInt64));
    const auto d = at::_flash_attention_backward(
      d_context_TAD, call.queries_TAD, call.keys_KGD, call.values_KGD,
      found.context_TAD, found.lse_AT, call.query_starts, call.key_starts,
      call.most_queries, call.most_keys, /*dropout_p=*/0.0,
      /*is_causal=*/false, /*rng_state=*/no_dropout, /*unused=*/no_dropout,
      call.scale, call.seen_before, /*window_size_right=*/0);
    return {std::get<0>(d), std::get<1>(d), std::get<2>(d)};
  }
};

} // namespace

void FlashSequences::append(std::int64_t begin, std::int64_t end) {
  const auto at = static_cast<std::ptrdiff_t>(key_tokens.size());
  key_tokens.resize(key_tokens.size() + static_cast<std::size_t>(end - begin));
  std::iota(key_tokens.begin() + at, key_tokens.end(), begin);
}

FlashSequences::FlashSequences(const AttentionShape& shape) {
  query_starts.push_back(0);
  key_starts.push_back(0);
  for (std::size_t s = 0; s + 1 < shape.cu_seqlens.size(); ++s) {
    const std::int64_t begin = shape.cu_seqlens[s];
    const std::int64_t end = shape.cu_seqlens[s + 1];
    if (begin == end)
      continue;
    const std::int64_t first_key = key_starts.back();
    if (!shape.continues.empty() && shape.continues[s] >= 0) {
      const auto continued = static_cast<std::size_t>(shape.continues[s]);
      const std::int64_t past = shape.cu_seqlens[continued];
      const std::int64_t past_end = shape.cu_seqlens[continued + 1];
      copies.push_back({past, first_key, past_end - past});
      append(past, past_end);
    }
    for (std::int64_t t = begin; t < end; ++t)
      token_keys.push_back(static_cast<std::int64_t>(key_tokens.size()) + t
                           - begin);
    append(begin, end);
    query_starts.push_back(static_cast<std::int32_t>(end));
    key_starts.push_back(static_cast<std::int32_t>(key_tokens.size()));
    most_queries = std::max(most_queries, end - begin);
    most_keys = std::max(most_keys, key_starts.back() - first_key);
  }
}

bool flash_takes_heads(std::int64_t head_dim, float cap) {
  return cap == 0 && head_dim % flash_vector == 0
         && head_dim <= flash_longest_head;
}

bool flash_takes(const AttentionShape& shape) {
  return shape.operands == DType::bf16
         && flash_takes_heads(shape.head_dim, shape.cap)
         && shape.cu_seqlens.back() > 0;
}

const FlashKernel& aten_flash() {
  static const AtenFlash kernel;
  return kernel;
}

} // namespace troupe::models
