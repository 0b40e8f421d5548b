// The gradient of what a stack's first stage begins with: rows of the token
// embedding and of learned positions.
#pragma once

#include "models/parallel/tensor_peers.hpp"
#include "models/transformer/transformer.hpp"

namespace troupe::models {

/// Adds to `grads` what the gradient `dx_TH` of the first layer's input gives
/// the embedding and the positions. `dx_TH` has all of the batch's tokens.
void inputs_backward(const Transformer& model, const PackedTokens& batch,
                     const TensorPeers& peers, ConstTypedPtr dx_TH,
                     const Weights& grads);

} // namespace troupe::models
