// PPO's clipped value loss.
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// Computes the mean of l_t = max((V - R)^2, (clip(V, old - value_clip, old +
/// value_clip) - R)^2) / 2; value_clip = 0 disables clipping. Shapes: values_T
/// (V), mask_T; columns `values` (old), `returns` (R), [T]. Mean and
/// denominators as in ppo_actor_loss. Metrics: critic/{vf_loss, vf_clipfrac,
/// vpred_mean}; vf_clipfrac is the share of tokens whose clipped square is
/// larger. Source: verl core_algos.py compute_value_loss; golden
/// rl/*value_loss*.
LossResult ppo_critic_loss(const TrainBatch& batch,
                           const Denominators& denominators,
                           const LossSettings& settings);
LossEntry ppo_critic_loss_entry();

} // namespace troupe::models
