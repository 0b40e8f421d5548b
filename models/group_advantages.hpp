// Advantages without a critic: the answers to one prompt are compared with each
// other (GRPO, RLOO) or with the greedy one (ReMax), or all returns of the
// batch with their mean (REINFORCE++).
#pragma once

#include "models/functions.hpp"

namespace troupe::models {

/// Reads loss_mask u8[L], scores f32[1], truncated u8[1]; logprobs and
/// ref_logprobs f32[L] where algorithm.kl_in is `reward`. Writes advantages
/// f32[L] (0 where masked) and train_mask u8[L] (see ppo_advantages). A group
/// is the `rollout.n` samples of a prompt; samples without a score are not in
/// it. With s the shaped score (models/rollout_batch.hpp):
///
///   group         (s - mean) / (unbiased deviation + 1e-6) of the group; the
///                 deviation of one is 1, its mean 0; without algorithm.whiten
///                 s - mean (Dr. GRPO)
///   rloo          s - mean of the others; one alone keeps s
///   remax         sum of the token rewards to come - s of the greedy answer,
///                 from greedy_scores, greedy_loss_mask and greedy_truncated
///   reinforce_pp  discounted sum of the token rewards to come (s at the last
///                 token, less kl_coef KL), whitened over the batch
///
/// Metrics: critic/{score, rewards, advantages}, response_length and
/// prompt_length /{mean, max, min}, frac_reward_zero_std (share of groups whose
/// answers are all worth the same), critic/greedy_score/mean (remax),
/// actor/reward_kl_penalty and actor/kl_coef. Source: verl core_algos.py;
/// golden rl/adv_{grpo,rloo,remax,reinforce_pp}.
FunctionResult group_advantages(const net::Rows& rows,
                                const FunctionContext& context);
FunctionEntry group_advantages_entry();

} // namespace troupe::models
