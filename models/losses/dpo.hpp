// Direct preference optimization (Rafailov et al. 2023).
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes, with h = (log p(chosen) - log p_ref(chosen)) - (the same for
/// rejected), each a sum over the response's tokens (mask_T): loss = sum over
/// pairs of -log sigmoid(beta h) / pairs of the mini-batch. Shapes: logprobs_T
/// and ref_logprobs [T] of sequences with chosen and rejected alternating.
/// Metrics: train/loss, train/accuracy (share of pairs with h > 0),
/// train/{chosen,rejected}_reward (beta times policy minus reference),
/// train/reward_margin, train/tokens. Source: OpenRLHF loss.py DPOLoss; golden
/// rl/dpo, training/dpo.
LossResult dpo_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings& settings);
LossEntry dpo_loss_entry();

} // namespace troupe::models
