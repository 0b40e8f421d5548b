// Attention over pieces of sequences (attention_pieces.hpp) of
// aten_backend.hpp: by the fused kernel in one call for all of them, or one
// after the other. The fused kernel aligns the last query of a sequence with
// its last key, which is where those of a piece are. Its keys are adjacent, so
// pieces that share keys get copies of them, whose gradients are added up in
// fp32, in the order of the pieces.
#pragma once

#include "models/gpu/aten_experts.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::models {

struct AtenAttended; // aten_parts.hpp
struct FlashCall;    // flash_attention.hpp
struct FlashPieces;  // aten_pieces.cpp

class AtenPieces : public AtenExperts {
public:
  void piece_attention(const PieceShape& shape, const PieceRows& rows,
                       TypedPtr context_TX, float* lse_AT) override;
  void piece_attention_backward(const PieceShape& shape, const PieceRows& rows,
                                const PieceContext& found,
                                ConstTypedPtr d_context_TX,
                                const PieceGrads& to) override;

protected:
  using AtenExperts::AtenExperts;

private:
  FlashCall flash_call(const PieceShape& shape, const FlashPieces& pieces,
                       const PieceRows& rows) const;
  AtenAttended read_piece(const PieceShape& shape, const AttentionPiece& piece,
                          const PieceRows& rows) const;
  void flash_pieces_backward(const PieceShape& shape, const PieceRows& rows,
                             const PieceContext& found,
                             ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX,
                             const at::Tensor& d_keys) const;
  void plain_pieces_backward(const PieceShape& shape, const PieceRows& rows,
                             const PieceContext& found,
                             ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX,
                             const at::Tensor& d_keys) const;
};

} // namespace troupe::models
