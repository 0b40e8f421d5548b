// The pairwise reward model (Bradley-Terry; Ouyang et al. 2022), with margins
// (Llama 2: Touvron et al. 2023, arXiv 2307.09288, eq. 2) and with centred
// scores (Eisenstein et al. 2023, arXiv 2312.09244).
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes loss = sum over pairs of
///   -log sigmoid(chosen - rejected - margin) + c (chosen + rejected)^2
/// / pairs of the mini-batch, with c center_coef and the margin 0 where rows
/// have none. Shapes: scores_N with chosen and rejected alternating;
/// pair_margin one number per pair; no mask. Metrics: train/loss,
/// train/accuracy (share of pairs with chosen > rejected),
/// train/{chosen,rejected}_score, train/score_margin, train/tokens. Source:
/// OpenRLHF loss.py PairWiseLoss, TRL's RewardTrainer; golden rl/rm_pairwise,
/// rl/rm_margin.
LossResult reward_loss(const TrainBatch& batch,
                       const Denominators& denominators,
                       const LossSettings& settings);
LossEntry reward_loss_entry();

} // namespace troupe::models
