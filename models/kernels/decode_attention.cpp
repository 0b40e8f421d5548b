#include "models/kernels/decode_attention.hpp"

#include "config/base/error.hpp"
#include "models/kernels/decode_kernels.hpp"
#include "models/kernels/qk_norm.hpp"
#include "models/kernels/threads.hpp"

namespace troupe::models {

namespace {

constexpr std::int64_t decode_parallel_floats = 1 << 13; // below: one thread

/// Prepares a query's or key's head for the scores: normed, rotated, scaled.
void place_head(const DecodeAttention& what, const float* norm_D,
                std::int32_t position, float scale, float* head) {
  const std::int64_t dim = what.head_dim;
  if (norm_D != nullptr)
    qk_norm({1, dim, 1, dim, what.norm_eps, what.norm}, norm_D, head, nullptr);
  if (what.rope != nullptr)
    return rope_head(head, what.rope->cos(position), what.rope->sin(position),
                     what.rope->num_frequencies(), dim, scale);
  for (std::int64_t i = 0; i < dim; ++i)
    head[i] *= scale;
}

/// Attends with one key-value head of one sequence's tokens.
void attend_tokens(const DecodeAttention& what, std::int64_t head,
                   std::span<const DecodeToken> tokens, KvCache& cache,
                   float* qkv, float* context) {
  static thread_local AlignedFloats scores;
  scores.reserve(cache.capacity());
  const std::int32_t page = cache.table()[tokens.front().slot];
  const CachedHead cached{cache.keys(what.layer, page, head).floats(),
                          cache.values(what.layer, page, head).floats(),
                          cache.capacity(),
                          cache.value_stride(),
                          what.head_dim,
                          what.cap,
                          what.window};
  const std::int64_t dim = what.head_dim;
  const std::int64_t queries = what.heads / what.kv_heads;
  float* token_qkv = qkv;
  for (const DecodeToken& token : tokens) {
    float* key = token_qkv + (what.heads + head) * dim;
    place_head(what, what.k_norm_D, token.position, 1.0F, key);
    append_to_cache(cached, token.position, key, key + what.kv_heads * dim);
    token_qkv += what.columns();
  }
  token_qkv = qkv;
  for (const DecodeToken& token : tokens) {
    for (std::int64_t i = head * queries; i < (head + 1) * queries; ++i) {
      float* query = token_qkv + i * dim;
      place_head(what, what.q_norm_D, token.position, what.scale, query);
      attend(cached, query, token.position + 1, scores.data(),
             context + i * dim);
    }
    token_qkv += what.columns();
    context += what.heads * dim;
  }
}

} // namespace

// One thread handles a head of a sequence, so its new keys are written before
// they are used.
void decode_attention(const DecodeAttention& what, const DecodeTokens& tokens,
                      KvCache& cache, float* qkv_RX, float* context_RX) {
  TROUPE_CHECK(cache.pages_per_slot() == 1, "a page holds a whole sequence");
  const auto num_groups = static_cast<std::int64_t>(tokens.groups.size());
  const std::int64_t context_width = what.heads * what.head_dim;
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const DecodeGroup& group
        = tokens.groups[static_cast<std::size_t>(i / what.kv_heads)];
      const auto row = static_cast<std::int64_t>(group.first);
      attend_tokens(
        what, i % what.kv_heads, tokens.all.subspan(group.first, group.tokens),
        cache, qkv_RX + row * what.columns(), context_RX + row * context_width);
    }
  };
  const auto num_tokens = static_cast<std::int64_t>(tokens.all.size());
  if (num_tokens * context_width < decode_parallel_floats)
    work(0, num_groups * what.kv_heads);
  else
    parallel_for(0, num_groups * what.kv_heads, 1, work);
}

} // namespace troupe::models
