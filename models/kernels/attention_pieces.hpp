// Attention of some tokens of each sequence, for ranks that have the rest of
// them between themselves (docs/context_parallelism.md): the queries of a rank
// are packed as always, and the keys that they may see are in a buffer of their
// own, gathered from all ranks. Causal and window masks follow from positions,
// so whole sequences (attention.hpp) are the case of pieces whose queries begin
// at position 0.
//
// Shapes: T queries, K keys; A, G, D and X as in attention.hpp; Y = 2 G D
// columns: G heads of k, then G of v.
#pragma once

#include "models/kernels/attention.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <cstdint>
#include <span>

namespace troupe::models {

/// Adjacent queries of a sequence, and the keys of its tokens up to the last of
/// them, which are adjacent too.
struct AttentionPiece {
  std::int64_t first_query = 0; ///< row of the queries
  std::int64_t queries = 0;
  std::int64_t first_key = 0; ///< row of the keys
  std::int64_t position = 0; ///< of the first query, counted from the first key

  std::int64_t keys() const {
    return position + queries;
  }
  std::int64_t last_key() const { ///< row after it
    return first_key + keys();
  }
};

struct PieceShape {
  AttentionShape heads; ///< without sequences
  /// In the order of their queries, which they have all of. Those that share
  /// keys are neighbours, and the others in the order of their keys.
  std::span<const AttentionPiece> pieces;
  std::int64_t queries = 0; ///< T
  std::int64_t keys = 0;    ///< K

  std::int64_t key_columns() const {
    return 2 * heads.kv_heads * heads.head_dim;
  }
  /// Throws InvariantError unless the pieces are as said above.
  void check() const;
};

/// Rows that attention over pieces reads: queries of qkv, whose keys and values
/// it does not read, and the gathered keys and values.
struct PieceRows {
  ConstTypedPtr qkv_TX;
  ConstTypedPtr keys_KY;
};

/// Results of attention over pieces that its gradient reads.
struct PieceContext {
  ConstTypedPtr context_TX;
  const float* lse_AT = nullptr;
};

/// Gradients: those of queries overwrite their columns of d_qkv, and the other
/// columns stay as they are; those of all keys and values are overwritten, with
/// zeros where no piece sees them.
struct PieceGrads {
  TypedPtr d_qkv_TX;
  TypedPtr d_keys_KY;
};

/// Computes context[T, A*D], as `attention` would of whole sequences: a row has
/// the same bits wherever its sequence is cut. `lse_AT` may be null.
void piece_attention(const PieceShape& shape, const PieceRows& rows,
                     TypedPtr context_TX, float* lse_AT);

/// Computes the gradients. Those of queries have the same bits wherever a
/// sequence is cut; those of keys and values are this rank's part of a sum.
void piece_attention_backward(const PieceShape& shape, const PieceRows& rows,
                              const PieceContext& found,
                              ConstTypedPtr d_context_TX, const PieceGrads& to);

} // namespace troupe::models
