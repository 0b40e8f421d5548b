// PPO: generate, score three ways at once, advantages on the host, train actor
// and critic at once. Old log-probabilities may have a call of their own; the
// reference model is there only where a KL term reads it.
#include "config/settings.hpp"
#include "plans/workflow.hpp"

namespace troupe::plans {

namespace {

Call ppo_generate(bool recompute) {
  Call call{.name = "actor_gen",
            .kind = CallKind::generate,
            .role = "actor",
            .reads = {"prompt_ids"},
            .writes = {"sequence_ids", "loss_mask", "logprobs", "truncated"},
            .fn = "generate"};
  if (recompute) {
    call.writes[2] = "rollout_logprobs";
    call.renames = {{"rollout_logprobs", "logprobs"}};
  }
  return call;
}

Call ppo_inference(std::string name, std::string role, std::string fn,
                   std::string writes) {
  Call call{.name = std::move(name),
            .kind = CallKind::inference,
            .role = std::move(role),
            .reads = {"sequence_ids"},
            .writes = {writes},
            .fn = std::move(fn)};
  if (call.fn == "logprobs")
    call.reads.push_back("loss_mask");
  if (writes != call.fn)
    call.renames = {{std::move(writes), call.fn}};
  return call;
}

Call ppo_train(std::string role, std::string fn,
               std::vector<std::string> reads) {
  return {.name = role + "_train",
          .kind = CallKind::train,
          .role = role,
          .reads = std::move(reads),
          .fn = std::move(fn)};
}

} // namespace

Workflow ppo_workflow(const Settings& settings) {
  const auto& algorithm = settings.algorithm;
  const bool recompute = algorithm.old_logprobs == "recompute";
  const bool has_ref = algorithm.kl_in != "none";
  Workflow ppo{.name = "ppo",
               .roles
               = {{.name = "actor", .trained = true},
                  {.name = "critic", .trained = true, .scalar_head = true},
                  {.name = "reward", .scalar_head = true}},
               .dataset_keys = {"prompt_ids"},
               .samples_are_prompts = true};
  ppo.calls = {ppo_generate(recompute),
               ppo_inference("rew_inf", "reward", "scores", "scores")};
  if (has_ref) {
    ppo.roles.push_back({.name = "ref"});
    ppo.calls.push_back(
      ppo_inference("ref_inf", "ref", "logprobs", "ref_logprobs"));
    if (algorithm.kl_target > 0)
      ppo.carried = {{.name = "kl_coef", .initial = algorithm.kl_coef}};
  }
  ppo.calls.push_back(
    ppo_inference("critic_inf", "critic", "values", "values"));
  if (recompute)
    ppo.calls.push_back(
      ppo_inference("actor_inf", "actor", "logprobs", "logprobs"));

  Call advantages{.name = "advantages",
                  .kind = CallKind::function,
                  .reads
                  = {"loss_mask", "scores", "logprobs", "values", "truncated"},
                  .writes = {"advantages", "returns"},
                  .fn = "ppo_advantages"};
  Call actor_train
    = ppo_train("actor", "ppo_actor_loss",
                {"sequence_ids", "loss_mask", "logprobs", "advantages"});
  auto& kl_reader = algorithm.kl_in == "loss" ? actor_train : advantages;
  if (has_ref)
    kl_reader.reads.push_back("ref_logprobs");
  if (recompute)
    actor_train.reads.push_back("rollout_logprobs");
  ppo.calls.push_back(std::move(advantages));
  ppo.calls.push_back(std::move(actor_train));
  ppo.calls.push_back(
    ppo_train("critic", "ppo_critic_loss",
              {"sequence_ids", "loss_mask", "values", "returns"}));
  return ppo;
}

} // namespace troupe::plans
