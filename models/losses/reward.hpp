// The pairwise reward model (Bradley-Terry; Ouyang et al. 2022).
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes loss = sum over pairs of -log sigmoid(chosen - rejected) / pairs of
/// the mini-batch. Shapes: scores_N with chosen and rejected alternating; no
/// mask. Metrics: train/loss, train/accuracy (share of pairs with chosen >
/// rejected), train/{chosen,rejected}_score, train/score_margin, train/tokens.
/// Source: OpenRLHF loss.py PairWiseLoss; golden rl/rm_pairwise.
LossResult reward_loss(const TrainBatch& batch,
                       const Denominators& denominators,
                       const LossSettings& settings);
LossEntry reward_loss_entry();

} // namespace troupe::models
