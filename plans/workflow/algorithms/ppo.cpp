// PPO: generate, score three ways at once, compute advantages on the host,
// train actor and critic at once. Old log-probabilities may have a call of
// their own; the reference model exists only where a KL term reads it.
#include "plans/workflow/rl_calls.hpp"

namespace troupe::plans {

Workflow ppo_workflow(const Settings& settings) {
  const auto& algorithm = settings.algorithm;
  const bool recompute = algorithm.old_logprobs == "recompute";
  const bool has_ref = algorithm.kl_in != "none";
  Workflow ppo{.name = "ppo",
               .roles
               = {{.name = "actor", .trained = true},
                  {.name = "critic", .trained = true, .scalar_head = true}},
               .dataset_keys = {"prompt_ids"},
               .samples_are_prompts = true};
  internal::add_scored_responses(ppo, settings);
  if (has_ref) {
    ppo.roles.push_back(internal::reference_role(settings));
    ppo.calls.push_back(
      internal::inference_call("ref_inf", "ref", "logprobs", "ref_logprobs"));
    if (algorithm.kl_control.target > 0)
      ppo.carried = {{.name = "kl_coef",
                      .initial = algorithm.kl_coef,
                      .metric = "actor/kl_coef"}};
  }
  if (algorithm.value.norm)
    for (const char* moment :
         {"returns_count", "returns_sum", "returns_sum_squares"})
      ppo.carried.push_back({.name = moment});
  ppo.calls.push_back(
    internal::inference_call("critic_inf", "critic", "values", "values"));
  if (recompute)
    ppo.calls.push_back(
      internal::inference_call("actor_inf", "actor", "logprobs", "logprobs"));

  Call advantages{.name = "advantages",
                  .kind = CallKind::function,
                  .reads
                  = {"loss_mask", "scores", "logprobs", "values", "truncated"},
                  .writes = {"advantages", "returns"},
                  .fn = "ppo_advantages"};
  Call actor_train = internal::train_call(
    "actor", "ppo_actor_loss",
    {"sequence_ids", "loss_mask", "logprobs", "advantages"});
  auto& kl_reader = algorithm.kl_in == "loss" ? actor_train : advantages;
  if (has_ref)
    kl_reader.reads.push_back("ref_logprobs");
  if (recompute)
    actor_train.reads.push_back("rollout_logprobs");
  internal::add_loss_keys(advantages, actor_train, settings);
  Call critic_train
    = internal::train_call("critic", "ppo_critic_loss",
                           {"sequence_ids", "loss_mask", "values", "returns"});
  if (internal::leaves_out_samples(settings)) {
    advantages.writes.push_back("train_mask");
    for (auto* train : {&actor_train, &critic_train})
      internal::train_on_kept_only(*train);
  }
  for (auto* call : {&advantages, &actor_train, &critic_train})
    ppo.calls.push_back(std::move(*call));
  internal::add_sampling_mask(ppo, settings);
  internal::add_routing_replay(ppo, settings);
  return ppo;
}

} // namespace troupe::plans
