// GRPO and its variants: `rollout.n` responses to each prompt, one reward each,
// and advantages from comparing the responses of a group; no critic. The
// reference model exists only where a KL term reads it.

#include "plans/workflow/rl_calls.hpp"

namespace troupe::plans {

Workflow grpo_workflow(const Settings& settings) {
  const auto& algorithm = settings.algorithm;
  Workflow grpo{.name = "grpo",
                .roles = {{.name = "actor", .trained = true}},
                .dataset_keys = {"prompt_ids"},
                .samples_are_prompts = true};
  internal::add_scored_responses(grpo, settings);
  internal::add_rounds(grpo, settings);
  Call advantages{.name = "advantages",
                  .kind = CallKind::function,
                  .reads = {"loss_mask", "scores", "truncated"},
                  .writes = {"advantages"},
                  .fn = "group_advantages"};
  Call train = internal::train_call(
    "actor", "ppo_actor_loss",
    {"sequence_ids", "loss_mask", "logprobs", "advantages"});
  if (algorithm.advantage == "remax") {
    internal::add_greedy_responses(grpo);
    for (const char* key :
         {"greedy_scores", "greedy_loss_mask", "greedy_truncated"})
      advantages.reads.emplace_back(key);
  }
  if (algorithm.kl_in != "none") {
    grpo.roles.push_back(internal::reference_role(settings));
    grpo.calls.push_back(
      internal::inference_call("ref_inf", "ref", "logprobs", "ref_logprobs"));
  }
  if (algorithm.kl_in == "loss")
    train.reads.push_back("ref_logprobs");
  if (algorithm.kl_in == "reward")
    for (const char* key : {"logprobs", "ref_logprobs"})
      advantages.reads.emplace_back(key);
  if (algorithm.old_logprobs == "recompute") {
    grpo.calls.push_back(
      internal::inference_call("actor_inf", "actor", "logprobs", "logprobs"));
    train.reads.push_back("rollout_logprobs");
  }
  internal::add_loss_keys(advantages, train, settings);
  if (internal::leaves_out_samples(settings)) {
    advantages.writes.push_back("train_mask");
    internal::train_on_kept_only(train);
  }
  grpo.calls.push_back(std::move(advantages));
  grpo.calls.push_back(std::move(train));
  internal::add_sampling_mask(grpo, settings);
  internal::add_routing_replay(grpo, settings);
  return grpo;
}

} // namespace troupe::plans
