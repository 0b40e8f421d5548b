// The loss of the actor in reinforcement learning: the policy loss that
// `algorithm.loss` names (policy_term.hpp), corrected for samples that were
// drawn by other numbers (correction.hpp), entropy bonus and KL in the loss.
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes, with l the policy term and w the correction's weights (1 without):
///   loss = mean(w l) - entropy_coef mean(entropy)
///          + (kl_in_loss) kl_coef mean(kl_estimator(logprobs, ref)).
/// Shapes: logprobs_T, entropy_T, mask_T; columns `logprobs` (old),
/// `advantages`, and if used `ref_logprobs`, `rollout_logprobs`, `cov_tokens`,
/// all [T]. Means are those of `settings.mean` over the mini-batch's masked
/// tokens; denominators are arguments.
/// Metrics: actor/{pg_loss, pg_clipfrac, pg_clipfrac_lower, ppo_kl, entropy,
/// kl_loss, is_weight_mean, is_clip_frac}; actor/rollout_logprob_gap and
/// training/rollout_probs_diff_mean, mean |log p - log p'| and |p - p'| of
/// sampler and trainer at recomputation (`rollout_logprobs`), else at this
/// step, where later mini-batches include the policy's own change.
/// Source of the parts: OpenRLHF loss.py PolicyLoss, verl core_algos.py; golden
/// rl/*policy*.
LossResult ppo_actor_loss(const TrainBatch& batch,
                          const Denominators& denominators,
                          const LossSettings& settings);
LossEntry ppo_actor_loss_entry();

} // namespace troupe::models
