#include "deferred_pieces.hpp"

#include <vector>

namespace troupe::testing {

using namespace models;

void DeferredPieces::piece_attention(const PieceShape& shape,
                                     const PieceRows& rows, TypedPtr context_TX,
                                     float* lse_AT) {
  later_with_tables([=, this,
                     pieces = std::vector<AttentionPiece>(shape.pieces.begin(),
                                                          shape.pieces.end())] {
    PieceShape own = shape;
    own.pieces = pieces;
    inner_.piece_attention(own, rows, context_TX, lse_AT);
  });
}

void DeferredPieces::piece_attention_backward(const PieceShape& shape,
                                              const PieceRows& rows,
                                              const PieceContext& found,
                                              ConstTypedPtr d_context_TX,
                                              const PieceGrads& to) {
  later_with_tables([=, this,
                     pieces = std::vector<AttentionPiece>(shape.pieces.begin(),
                                                          shape.pieces.end())] {
    PieceShape own = shape;
    own.pieces = pieces;
    inner_.piece_attention_backward(own, rows, found, d_context_TX, to);
  });
}

} // namespace troupe::testing
