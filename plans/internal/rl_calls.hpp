// Calls that the workflows of reinforcement learning have in common.
#pragma once

#include "config/settings.hpp"
#include "plans/workflow.hpp"

namespace troupe::plans::internal {

/// The model that KL terms compare with: frozen, or a follower of the actor
/// where settings give it an ema_decay.
Role reference_role(const Settings& settings);
/// Answers to prompts, with `algorithm.old_logprobs: recompute` under the name
/// rollout_logprobs.
Call generate_call(const Settings& settings);
/// `role` says `fn` about whole sequences, into key `writes`.
Call inference_call(std::string name, std::string role, std::string fn,
                    std::string writes);
Call train_call(std::string role, std::string fn,
                std::vector<std::string> reads);
/// Adds what writes `scores`: the reward model, or a function that asks rules,
/// programs or a server.
void add_reward(Workflow& workflow, const Settings& settings);

/// Adds the greedy answer to each prompt and its score, under `greedy_` keys:
/// the baseline of ReMax (Li et al. 2024).
void add_greedy_answers(Workflow& workflow);

/// Whether samples without a score stay out of training: then the call that
/// makes advantages writes `train_mask`.
bool leaves_out_samples(const Settings& settings);
/// Makes the training read `train_mask` in place of loss_mask.
void train_on_scored_only(Call& train);

} // namespace troupe::plans::internal
