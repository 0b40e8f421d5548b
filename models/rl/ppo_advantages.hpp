// PPO's host function between scoring and training: token rewards with the KL
// penalty, generalized advantages, whitening, and the metrics of the batch.
#pragma once

#include "models/rl/functions.hpp"

namespace troupe::models {

/// Computes advantages. Reads loss_mask u8[L], logprobs f32[L], values
/// f32[L+1], scores f32[1], truncated u8[1], and ref_logprobs f32[L] if
/// algorithm.kl_in is `reward`. Writes advantages, returns, kl, f32[L] each (0
/// where masked), and train_mask u8[L]: loss_mask, 0 for samples whose score is
/// NaN, which are excluded from everything.
///
///   score   = clip(scale * scores + bias, -clip, clip); reward.missing_eos
///             replaces it for truncated responses if set
///   kl_t    = estimator(logprobs_t, ref_logprobs_t), 0 without reference
///   reward_t = -kl_coef * kl_t, + score at the last masked token
///   advantages, returns = gae(reward, values; V after the last token is
///             values[L] if truncated and algorithm.bootstrap, else 0), the
///             first with lambda by length if algorithm.lam_alpha, and
///             whitened over the whole batch if algorithm.whiten
///
/// With algorithm.value_norm, `values` and the written returns are (x - mean) /
/// deviation, with the moments of all returns before this batch (values) or
/// including it (returns): PopArt without its rescaling of the weights (van
/// Hasselt et al. 2016), as in MAPPO (Yu et al. 2022).
///
/// With loss clip_cov or kl_cov also cov_tokens (models/rl/cov_tokens.hpp).
///
/// Carried: kl_coef, if algorithm.kl_target > 0: updated by the adaptive
/// controller with the batch's mean KL per sequence and its number of samples;
/// returns_{count, sum, sum_squares}, with algorithm.value_norm.
/// Metrics: critic/{score, rewards, advantages, returns, values}/{mean, max,
/// min} (score: as returned by the reward model; rewards: sum of a sequence's
/// token rewards), critic/vf_explained_var, actor/reward_kl_penalty (nats per
/// sequence, summed over its tokens), actor/kl_coef, response_length and
/// prompt_length /{mean, max, min}, response_length/clip_ratio (share of
/// truncated responses).
FunctionResult ppo_advantages(const net::Rows& rows,
                              const FunctionContext& context);
FunctionEntry ppo_advantages_entry();

} // namespace troupe::models
