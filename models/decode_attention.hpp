// One layer's attention while generating: rows of any mixture of sequences,
// each at its own position, write their keys and values to the cache and attend
// to what their sequence has there.
//
// R rows of a pass, A heads, G key-value heads, D head dim.
#pragma once

#include "models/kv_cache.hpp"
#include "models/rope.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::models {

/// One token that enters the stack.
struct DecodeRow {
  std::int32_t token = 0;
  std::int32_t slot = 0;
  std::int32_t position = 0; ///< in its sequence; earlier ones are cached
};

/// The rows of a slot in a pass: neighbours with rising positions.
struct DecodeGroup {
  std::size_t first = 0;
  std::size_t rows = 0;
  std::int32_t slot = 0;
  std::int64_t keys = 0; ///< no fewer than the last row sees
};

/// Rows of a pass.
struct DecodeRows {
  std::span<const DecodeRow> rows; ///< of the device: as they are by then
  std::span<const DecodeGroup> groups;
};

struct DecodeAttention {
  std::int64_t layer = 0;
  std::int64_t heads = 0;    ///< A
  std::int64_t kv_heads = 0; ///< G
  std::int64_t head_dim = 0; ///< D
  float scale = 1;           ///< of queries
  float cap = 0;             ///< of scores; 0: none
  std::int64_t window = 0;   ///< the last tokens that are seen; 0: all
  float norm_eps = 0;
  const float* q_norm_D = nullptr; ///< norms of heads, where the family has
  const float* k_norm_D = nullptr;
  const RopeTable* rope = nullptr; ///< null: positions were learned

  std::int64_t columns() const { ///< of qkv
    return (heads + 2 * kv_heads) * head_dim;
  }
};

/// context [R, A*D] of qkv [R, (A+2G)*D], whose heads it changes.
void decode_attention(const DecodeAttention& what, const DecodeRows& rows,
                      KvCache& cache, float* qkv_RX, float* context_RX);

} // namespace troupe::models
