// Calls that the reinforcement-learning workflows have in common.
#pragma once

#include "config/settings/settings.hpp"
#include "plans/workflow/workflow.hpp"

namespace troupe::plans::internal {

/// Returns the model that KL terms compare with: frozen, or an EMA of the actor
/// if the settings give it an ema_decay.
Role reference_role(const Settings& settings);
/// Returns the call that responds to prompts; with `algorithm.old_logprobs:
/// recompute` its log-probabilities are named rollout_logprobs.
Call generate_call(const Settings& settings);
/// Returns a call that runs `fn` of `role` on whole sequences and writes key
/// `writes`.
Call inference_call(std::string name, std::string role, std::string fn,
                    std::string writes);
Call train_call(std::string role, std::string fn,
                std::vector<std::string> reads);
/// Adds the generation, and the writer of `scores`: the reward model, or a
/// function that evaluates rules, programs or a server.
void add_scored_responses(Workflow& workflow, const Settings& settings);

/// With `agents.command`: makes programs lead what is generated, and rewards
/// read their numbers where `reward.kind` says so.
void add_agents(Workflow& workflow, const Settings& settings);

/// Adds the greedy response to each prompt and its score, under `greedy_` keys:
/// the baseline of ReMax (Li et al. 2024).
void add_greedy_responses(Workflow& workflow);

/// Makes the calls up to the scores run in rounds, and adds the one that keeps
/// groups after each (dynamic sampling of DAPO, arXiv 2503.14476, section 3.2).
void add_rounds(Workflow& workflow, const Settings& settings);

/// Adds what `algorithm.loss` needs besides advantages: the choice of tokens of
/// clip_cov and kl_cov, made by the call that makes advantages.
void add_loss_keys(Call& advantages, Call& train, const Settings& settings);

/// With `algorithm.sampling_mask`: makes the generation write the tokens that
/// it chose among, and everything that computes log-probabilities read them.
void add_sampling_mask(Workflow& workflow, const Settings& settings);

/// With `algorithm.routing_replay`: makes the generation write the experts that
/// tokens went to, and the actor's other calls read them.
void add_routing_replay(Workflow& workflow, const Settings& settings);

/// Returns whether samples may be excluded from training, those without a score
/// or truncated ones: then the call that makes advantages writes `train_mask`.
bool leaves_out_samples(const Settings& settings);
/// Makes the training read `train_mask` in place of loss_mask.
void train_on_kept_only(Call& train);

} // namespace troupe::plans::internal
