#include "models/flash_attention.hpp"

#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

namespace troupe::models {

namespace {

constexpr std::int64_t flash_vector = 8; // elements of a head that go together
constexpr std::int64_t flash_longest_head = 256;

class AtenFlash final : public FlashKernel {
public:
  at::ScalarType operands() const override {
    return at::kBFloat16;
  }

  // Causal is a window without keys behind the query. Said so, and not by the
  // flag, the kernel treats sequences of one token as all others.
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

FlashSequences::FlashSequences(const AttentionShape& shape) {
  const auto continued = [&](std::size_t s) {
    return shape.continues.empty() ? -1 : shape.continues[s];
  };
  const auto append = [&](std::size_t s) {
    const std::size_t at = key_tokens.size();
    const std::int64_t begin = shape.cu_seqlens[s];
    key_tokens.resize(
      at + static_cast<std::size_t>(shape.cu_seqlens[s + 1] - begin));
    std::iota(key_tokens.begin() + static_cast<std::ptrdiff_t>(at),
              key_tokens.end(), begin);
  };
  query_starts.push_back(0);
  key_starts.push_back(0);
  for (std::size_t s = 0; s + 1 < shape.cu_seqlens.size(); ++s) {
    const std::int64_t queries = shape.cu_seqlens[s + 1] - shape.cu_seqlens[s];
    if (queries == 0)
      continue;
    if (continued(s) >= 0)
      append(static_cast<std::size_t>(continued(s)));
    append(s);
    query_starts.push_back(static_cast<std::int32_t>(shape.cu_seqlens[s + 1]));
    const auto keys
      = static_cast<std::int64_t>(key_tokens.size()) - key_starts.back();
    key_starts.push_back(static_cast<std::int32_t>(key_tokens.size()));
    most_queries = std::max(most_queries, queries);
    most_keys = std::max(most_keys, keys);
  }
  if (key_starts == query_starts)
    key_tokens.clear();
}

bool flash_takes(const AttentionShape& shape) {
  return shape.operands == DType::bf16 && shape.cap == 0
         && shape.head_dim % flash_vector == 0
         && shape.head_dim <= flash_longest_head && shape.cu_seqlens.back() > 0;
}

const FlashKernel& aten_flash() {
  static const AtenFlash kernel;
  return kernel;
}

} // namespace troupe::models
