// Losses of preference pairs without a reward model, which
// `algorithm.pair_loss` names: direct preference optimization (Rafailov et al.
// 2023, arXiv 2305.18290, eq. 7) and its conservative form (Mitchell 2023), IPO
// (Azar et al. 2023, arXiv 2310.12036, eq. 17), and without a reference model
// SimPO (Meng et al. 2024, arXiv 2405.14734) and ORPO (Hong et al. 2024, arXiv
// 2403.07691).
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes, with h = (log p(chosen) - log p_ref(chosen)) - (the same for
/// rejected), each a sum over the response's tokens (mask_T), m the mean of log
/// p over these, b beta, e the label smoothing: the mean over pairs of
///   dpo    -(1 - e) log sigmoid(b h) - e log sigmoid(-b h);
///   ipo    (h - 1 / (2 b))^2;
///   simpo  -log sigmoid(b (m(chosen) - m(rejected)) - margin);
///   orpo   -m(chosen) - b log sigmoid(o(chosen) - o(rejected)), with
///          o = m - log(1 - exp(m)), the logarithm of the odds.
/// Shapes: logprobs_T and, of the first two, ref_logprobs [T] of sequences with
/// chosen and rejected alternating. Metrics: train/loss, train/accuracy (share
/// of pairs whose chosen reward is larger), train/{chosen,rejected}_reward (b
/// times policy minus reference; simpo: b m; orpo: o), train/reward_margin,
/// train/tokens. Source: OpenRLHF loss.py DPOLoss, TRL's CPO and ORPO trainers;
/// golden rl/dpo*, rl/pair_*, training/dpo.
LossResult dpo_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings& settings);
LossEntry dpo_loss_entry();

} // namespace troupe::models
