// One layer's attention during generation: tokens of any mixture of sequences,
// each at its own position, write their keys and values to the cache and attend
// to what their sequence has there.
//
// R tokens of a pass, A heads, G key-value heads, D head dim.
#pragma once

#include "models/kernels/decode_token.hpp"
#include "models/kernels/kv_cache.hpp"
#include "models/kernels/rope.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::models {

/// The tokens of a slot in a pass: adjacent, with rising positions.
struct DecodeGroup {
  std::size_t first = 0;
  std::size_t tokens = 0;
  std::int32_t slot = 0;
  std::int64_t keys = 0; ///< that the last token sees; or more, if there is
                         ///< one token
};

/// The tokens of a pass.
struct DecodeTokens {
  std::span<const DecodeToken> all; ///< on the device; their content is read
                                    ///< when the kernel runs
  std::span<const DecodeGroup> groups;
};

struct DecodeAttention {
  std::int64_t layer = 0;
  std::int64_t heads = 0;    ///< A
  std::int64_t kv_heads = 0; ///< G
  std::int64_t head_dim = 0; ///< D
  float scale = 1;           ///< factor of the queries
  float cap = 0;             ///< soft cap of the scores; 0: none
  std::int64_t window = 0;   ///< last tokens that are seen; 0: all
  float norm_eps = 0;
  NormKind norm = NormKind::rms;   ///< of heads
  const float* q_norm_D = nullptr; ///< head norms, if the family has them
  const float* k_norm_D = nullptr;
  const RopeTable* rope = nullptr; ///< null: nothing is rotated

  std::int64_t columns() const { ///< columns of qkv
    return (heads + 2 * kv_heads) * head_dim;
  }
};

/// Computes context [R, A*D] from qkv [R, (A+2G)*D]; changes the heads of qkv.
void decode_attention(const DecodeAttention& what, const DecodeTokens& tokens,
                      KvCache& cache, float* qkv_RX, float* context_RX);

} // namespace troupe::models
