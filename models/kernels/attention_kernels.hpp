// Attention of training, over whole sequences or pieces of them, attention of
// generation over the KV cache, and rotary positions. A part of backend.hpp.
#pragma once

#include "models/kernels/attention.hpp"
#include "models/kernels/attention_pieces.hpp"
#include "models/kernels/decode_attention.hpp"
#include "models/kernels/rope.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <cstdint>
#include <limits>
#include <span>

namespace troupe::models {

class AttentionKernels {
public:
  virtual ~AttentionKernels() = default;

  virtual void rope(const RopeShape& shape, const RopeTable& table,
                    std::span<const std::int32_t> positions_T, TypedPtr x,
                    bool backwards)
    = 0;

  virtual void attention(const AttentionShape& shape, ConstTypedPtr qkv_TX,
                         TypedPtr context_TX, float* lse_AT)
    = 0;
  virtual void attention_backward(const AttentionShape& shape,
                                  ConstTypedPtr qkv_TX,
                                  ConstTypedPtr context_TX, const float* lse_AT,
                                  ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX)
    = 0;
  virtual void piece_attention(const PieceShape& shape, const PieceRows& rows,
                               TypedPtr context_TX, float* lse_AT)
    = 0;
  virtual void
  piece_attention_backward(const PieceShape& shape, const PieceRows& rows,
                           const PieceContext& found,
                           ConstTypedPtr d_context_TX, const PieceGrads& to)
    = 0;

  virtual void decode_attention(const DecodeAttention& what,
                                const DecodeTokens& tokens, KvCache& cache,
                                TypedPtr qkv_RX, TypedPtr context_RX)
    = 0;
  /// Returns the most tokens of a page of the KV cache; by default a page holds
  /// a whole sequence.
  virtual std::int64_t page_tokens() const {
    return std::numeric_limits<std::int64_t>::max();
  }
};

} // namespace troupe::models
