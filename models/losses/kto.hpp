// Kahneman-Tversky optimization: preferences from responses that are labelled
// one by one (Ethayarajh et al. 2024, arXiv 2402.01306, eq. 8).
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes, with h = log p(response) - log p_ref(response), each a sum over
/// the response's tokens (mask_T), z the KL of policy and reference that the
/// whole batch is compared with (models/rl/kto_functions.hpp), b beta and w the
/// weight of the label: the mean over sequences of
///   w_desirable (1 - sigmoid(b (h - z)))   where `desirable` is 1;
///   w_undesirable (1 - sigmoid(b (z - h)))   elsewhere.
/// No gradient flows through z. Shapes: logprobs_T, ref_logprobs [T];
/// desirable, kl_point one number per sequence. Denominator: sequences.
/// Metrics: train/loss, train/{desirable,undesirable}_reward (b h),
/// train/accuracy (share of sequences with h on their side of z), train/tokens.
/// Source: TRL's KTOTrainer; golden rl/kto.
LossResult kto_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings& settings);
LossEntry kto_loss_entry();

} // namespace troupe::models
