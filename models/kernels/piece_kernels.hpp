// Attention over pieces (attention_pieces.hpp) as kernels that every backend
// has: a part of backend.hpp.
#pragma once

#include "models/kernels/attention_pieces.hpp"
#include "models/kernels/expert_choice.hpp"

namespace troupe::models {

class PieceKernels : public ExpertKernels {
public:
  virtual void piece_attention(const PieceShape& shape, const PieceRows& rows,
                               TypedPtr context_TX, float* lse_AT)
    = 0;
  virtual void
  piece_attention_backward(const PieceShape& shape, const PieceRows& rows,
                           const PieceContext& found,
                           ConstTypedPtr d_context_TX, const PieceGrads& to)
    = 0;
};

} // namespace troupe::models
