#include "models/decode_attention.hpp"

#include "models/decode_kernels.hpp"
#include "models/head_norm.hpp"
#include "models/threads.hpp"

namespace troupe::models {

namespace {

constexpr std::int64_t decode_parallel_floats = 1 << 13; // below: one thread

/// A query's or key's head as the scores want it: normed, rotated, scaled.
void place_head(const DecodeAttention& what, const float* norm_D,
                std::int32_t position, float scale, float* head) {
  const std::int64_t dim = what.head_dim;
  if (norm_D != nullptr)
    head_norm({1, dim, 1, dim, what.norm_eps}, norm_D, head, nullptr);
  if (what.rope != nullptr)
    return rope_head(head, what.rope->cos(position), what.rope->sin(position),
                     dim, scale);
  for (std::int64_t i = 0; i < dim; ++i)
    head[i] *= scale;
}

/// One key-value head of one sequence's rows.
void attend_rows(const DecodeAttention& what, std::int64_t head,
                 std::span<const DecodeRow> rows, KvCache& cache, float* qkv,
                 float* context) {
  static thread_local AlignedFloats scores;
  scores.reserve(cache.capacity());
  const std::int32_t slot = rows.front().slot;
  const CachedHead cached{cache.keys(what.layer, slot, head),
                          cache.values(what.layer, slot, head),
                          cache.capacity(),
                          cache.value_stride(),
                          what.head_dim,
                          what.cap,
                          what.window};
  const std::int64_t dim = what.head_dim;
  const std::int64_t queries = what.heads / what.kv_heads;
  float* row_qkv = qkv;
  for (const DecodeRow& row : rows) {
    float* key = row_qkv + (what.heads + head) * dim;
    place_head(what, what.k_norm_D, row.position, 1.0F, key);
    append_to_cache(cached, row.position, key, key + what.kv_heads * dim);
    row_qkv += what.columns();
  }
  row_qkv = qkv;
  for (const DecodeRow& row : rows) {
    for (std::int64_t i = head * queries; i < (head + 1) * queries; ++i) {
      float* query = row_qkv + i * dim;
      place_head(what, what.q_norm_D, row.position, what.scale, query);
      attend(cached, query, row.position + 1, scores.data(), context + i * dim);
    }
    row_qkv += what.columns();
    context += what.heads * dim;
  }
}

} // namespace

// A sequence's head is one thread's: its new keys stand before their use.
void decode_attention(const DecodeAttention& what, const DecodeRows& rows,
                      KvCache& cache, float* qkv_RX, float* context_RX) {
  const auto num_groups = static_cast<std::int64_t>(rows.groups.size());
  const std::int64_t context_width = what.heads * what.head_dim;
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const DecodeGroup& group
        = rows.groups[static_cast<std::size_t>(i / what.kv_heads)];
      const auto row = static_cast<std::int64_t>(group.first);
      attend_rows(
        what, i % what.kv_heads, rows.rows.subspan(group.first, group.rows),
        cache, qkv_RX + row * what.columns(), context_RX + row * context_width);
    }
  };
  const auto num_rows = static_cast<std::int64_t>(rows.rows.size());
  if (num_rows * context_width < decode_parallel_floats)
    work(0, num_groups * what.kv_heads);
  else
    parallel_for(0, num_groups * what.kv_heads, 1, work);
}

} // namespace troupe::models
