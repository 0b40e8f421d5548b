// Attention over pieces of deferred_backend.hpp: the pieces are a host table,
// so they are kept until the kernel runs.
#pragma once

#include "deferred_experts.hpp"

namespace troupe::testing {

class DeferredPieces : public DeferredExperts {
public:
  void piece_attention(const models::PieceShape& shape,
                       const models::PieceRows& rows,
                       models::TypedPtr context_TX, float* lse_AT) override;
  void piece_attention_backward(const models::PieceShape& shape,
                                const models::PieceRows& rows,
                                const models::PieceContext& found,
                                models::ConstTypedPtr d_context_TX,
                                const models::PieceGrads& to) override;

protected:
  using DeferredExperts::DeferredExperts;
};

} // namespace troupe::testing
