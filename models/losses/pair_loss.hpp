// Common code of losses over pairs: the Bradley-Terry likelihood that the
// chosen sequence of a pair beats the rejected one or another function of their
// gap, and the metrics of both.
#pragma once

#include "models/losses/loss.hpp"

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

namespace troupe::models {

/// Loss of each pair from its gap, chosen minus rejected, both [P].
using GapLoss = std::function<at::Tensor(const at::Tensor& gaps_P)>;

/// Returns -log sigmoid(gap), the likelihood of Bradley and Terry.
at::Tensor logistic_gap_loss(const at::Tensor& gaps_P);

/// Computes loss = sum over pairs of loss_of(chosen - rejected) / pairs of the
/// mini-batch. values_N: one number per sequence, chosen and rejected
/// alternating. Metrics: train/loss, train/accuracy (share of pairs with chosen
/// > rejected), train/{chosen,rejected}_NAME, train/NAME_margin, train/tokens.
LossResult pair_loss(const at::Tensor& values_N, const std::string& name,
                     const TrainBatch& batch, const Denominators& denominators,
                     const GapLoss& loss_of = &logistic_gap_loss);

} // namespace troupe::models
