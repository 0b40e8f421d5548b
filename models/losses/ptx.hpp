// The language-model loss that keeps an actor's texts while it is trained by
// reinforcement (PPO-ptx: Ouyang et al. 2022, arXiv 2203.02155, eq. 2; the
// unsupervised loss of DeepSpeed-Chat). Its rows are those of data.ptx, which a
// training call has beside its samples (models/engine/train_rows.hpp).
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes loss = ptx_coef * sum over t with mask_t = 1 of -logprobs_t /
/// tokens of data.ptx in the mini-batch. Shapes: logprobs_T, mask_T. Metrics:
/// actor/ptx_loss (token mean, without the coefficient), actor/ptx_tokens.
/// Source: golden training/ptx.
LossResult ptx_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings& settings);
LossEntry ptx_loss_entry();

} // namespace troupe::models
