// Common code of losses over pairs: the Bradley-Terry likelihood that the
// chosen sequence of a pair beats the rejected one, and its metrics.
#pragma once

#include "models/losses/loss.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::models {

/// Computes loss = sum over pairs of -log sigmoid(chosen - rejected) / pairs of
/// the mini-batch. values_N: one number per sequence, chosen and rejected
/// alternating. Metrics: train/loss, train/accuracy (share of pairs with chosen
/// > rejected), train/{chosen,rejected}_NAME, train/NAME_margin, train/tokens.
LossResult pair_loss(const at::Tensor& values_N, const std::string& name,
                     const TrainBatch& batch, const Denominators& denominators);

} // namespace troupe::models
