// Corrections for samples that were drawn by other numbers than training
// computes: by an engine of another precision, by filters, or by older weights.
// With u = p_train / p_rollout of a token, a token's policy loss is multiplied
// by a weight without a gradient; entropy and KL terms are not,
// but the cost of kl_cov, which is part of its policy loss.
#pragma once

#include "models/losses/loss.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::models {

/// Returns the weights [T] of `options.kind` (not none):
///   tis            clip(u, floor, cap): truncated importance sampling
///                  (Yao et al. 2025, "Your Efficient RL Framework Secretly
///                  Brings You Off-Policy RL Training")
///   icepop         u where floor <= u <= cap, else 0 (Ling team 2025, "Small
///                  Leak Can Sink a Great Ship", IcePop)
///   sequence_tis   clip(U, floor, cap), U the product of u over the response
///   sequence_mask  U where floor <= U <= cap, else 0 (Liu et al. 2025, "When
///                  Speed Kills Stability", MIS; TRL's sequence_mask)
///   geometric_mask u where floor <= U^(1/length) <= cap, else 0 (seq-mask-tis
///                  of OpenRLHF and NeMo-RL)
///   rejection      1 where floor <= U^(1/length) <= cap, else 0 (verl's
///                  rollout_rs seq_mean_k1)
/// u is of the old policy: `logprobs` over `rollout_logprobs`. Without the
/// latter (`old_logprobs: rollout`) the old policy is the sampler's and the
/// ratio of the loss corrects already: then u is of the policy itself, and
/// `rejection` alone is meaningful. Sums of logarithms are bounded by 20, as in
/// verl. Adds actor/is_weight_mean, the mean weight, and actor/is_clip_frac,
/// the share of tokens whose weight was cut or is 0.
/// Golden rl/correction_*.
at::Tensor correction_weights_T(const TrainBatch& batch,
                                const CorrectionOptions& options,
                                MetricSums& sums);

} // namespace troupe::models
