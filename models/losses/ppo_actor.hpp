// PPO's clipped policy loss (Schulman et al. 2017), with asymmetric ranges
// (DAPO), dual clipping (Ye et al. 2020), entropy bonus and KL in the loss.
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes, with r = exp(logprobs - old), A the advantage:
///   l_t = -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A);
///   where dual_clip = c > 0 and A < 0: l_t = -max(that minimum, c A);
///   loss = mean(l) - entropy_coef mean(entropy)
///          + (kl_in_loss) kl_coef mean(kl_estimator(logprobs, ref)).
/// Shapes: logprobs_T, entropy_T, mask_T; columns `logprobs` (old),
/// `advantages`, and if used `ref_logprobs`, `rollout_logprobs`, all [T]. Means
/// are those of `settings.mean` over the mini-batch's masked tokens;
/// denominators are arguments.
/// Metrics: actor/{pg_loss, pg_clipfrac, pg_clipfrac_lower, ppo_kl, entropy,
/// kl_loss} and training/rollout_probs_diff_mean: mean |p - p'| of sampler and
/// trainer at recomputation (`rollout_logprobs`), else at this step, where
/// later mini-batches include the policy's own change.
/// Source: OpenRLHF loss.py PolicyLoss, verl core_algos.py; golden
/// rl/*policy_loss*.
LossResult ppo_actor_loss(const TrainBatch& batch,
                          const Denominators& denominators,
                          const LossSettings& settings);
LossEntry ppo_actor_loss_entry();

} // namespace troupe::models
