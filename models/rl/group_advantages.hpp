// Advantages without a critic: the responses to one prompt are compared with
// each other (GRPO, RLOO) or with the greedy one (ReMax), or all returns of the
// batch with their mean (REINFORCE++).
#pragma once

#include "models/rl/functions.hpp"

namespace troupe::models {

/// Computes advantages. Reads loss_mask u8[L], scores f32[1], truncated u8[1];
/// logprobs and ref_logprobs f32[L] if algorithm.kl_in is `reward`. Writes
/// advantages f32[L] (0 where masked) and train_mask u8[L] (see
/// ppo_advantages). A group consists of the `rollout.n` samples of a prompt,
/// except those without a score. With s the shaped score
/// (models/rl/rollout_batch.hpp):
///
///   group         (s - mean) / (deviation + deviation_eps) of the group; a
///                 single one has deviation 1 and mean 0; without
///                 algorithm.whiten s - mean (Dr. GRPO); with baseline
///                 `others` mean and deviation are those of the others; with
///                 whiten_batch whitened over the batch afterwards
///   rloo          s - mean of the others; a single one keeps s
///   remax         sum of the future token rewards - s of the greedy response,
///                 from greedy_scores, greedy_loss_mask and greedy_truncated
///   reinforce_pp  discounted sum of the future token rewards (s at the last
///                 token, minus kl_coef KL), whitened over the batch
///
/// With loss clip_cov or kl_cov also cov_tokens (models/rl/cov_tokens.hpp).
///
/// Metrics: critic/{score, rewards, advantages}, response_length and
/// prompt_length /{mean, max, min}, frac_reward_zero_std (share of groups whose
/// responses all have the same reward), critic/greedy_score/mean (remax),
/// actor/reward_kl_penalty and actor/kl_coef. Source: verl core_algos.py;
/// golden rl/adv_{grpo,rloo,remax,reinforce_pp}.
FunctionResult group_advantages(const net::Rows& rows,
                                const FunctionContext& context);
FunctionEntry group_advantages_entry();

} // namespace troupe::models
