// Supervised fine-tuning: negative log-likelihood of the response tokens.
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes loss = sum over t with mask_t = 1 of -logprobs_t / tokens of the
/// mini-batch. Shapes: logprobs_T, mask_T. Metrics: train/loss (token mean),
/// train/tokens. Source: golden training/sft; the same as TRL's SFTTrainer with
/// completion masks and a global token count.
LossResult sft_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings& settings);
LossEntry sft_loss_entry();

} // namespace troupe::models
