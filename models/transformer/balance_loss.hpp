// The sequence-wise balance loss of a layer with experts (DeepSeek-V3, arXiv
// 2412.19437, equations 17 to 20): of each sequence, the sum over experts of
// f_e P_e. f_e is the expert's load over the mean load, P_e the mean of its
// score over the sequence's tokens, scores being divided by their sum over all
// experts. It is 1 for even loads and scores, and has its gradient in P_e.
//
// The loss is one of sequences and not of batches, so its gradient does not
// depend on micro-batches or dp ranks (I1).
#pragma once

#include "models/transformer/router.hpp"
#include "models/transformer/transformer.hpp"

namespace troupe::models {

/// Returns the losses of a batch's sequences, in the order of the batch;
/// those that others continue are parts of these. `routing` has scores.
std::vector<double> balance_losses(const RouterShape& shape,
                                   const Routing& routing,
                                   const PackedTokens& batch);

/// Adds the gradient of `batch.balance_weight` times the sum of the losses to
/// that of the router's logits.
void balance_backward(const RouterShape& shape, const Routing& routing,
                      const PackedTokens& batch, float* d_logits_TE);

} // namespace troupe::models
