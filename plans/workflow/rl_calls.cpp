#include "plans/workflow/rl_calls.hpp"

#include "config/settings/workflow_traits.hpp"

#include <algorithm>

namespace troupe::plans::internal {

namespace {

/// Adds the reward model, or the function that evaluates what else scores.
void add_reward(Workflow& workflow, const Settings& settings) {
  if (settings.reward.kind == "model") {
    workflow.roles.push_back({.name = "reward", .scalar_head = true});
    workflow.calls.push_back(
      inference_call("rew_inf", "reward", "scores", "scores"));
    return;
  }
  workflow.calls.push_back({.name = "rewards",
                            .kind = CallKind::function,
                            .reads = {"sequence_ids", "loss_mask"},
                            .writes = {"scores"},
                            .fn = "rewards",
                            .scope = Scope::sample});
}

} // namespace

Role reference_role(const Settings& settings) {
  Role ref{.name = "ref"};
  const auto model = settings.models.find(ref.name);
  if (model != settings.models.end() && model->second.ema_decay < 1)
    ref.ema = {.role = "actor"};
  return ref;
}

Call generate_call(const Settings& settings) {
  Call call{.name = "actor_gen",
            .kind = CallKind::generate,
            .role = "actor",
            .reads = {"prompt_ids"},
            .writes = {"sequence_ids", "loss_mask", "logprobs", "truncated"},
            .fn = "generate"};
  if (settings.algorithm.old_logprobs == "recompute") {
    call.writes[2] = "rollout_logprobs";
    call.renames = {{"rollout_logprobs", "logprobs"}};
  }
  return call;
}

Call inference_call(std::string name, std::string role, std::string fn,
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

Call train_call(std::string role, std::string fn,
                std::vector<std::string> reads) {
  return {.name = role + "_train",
          .kind = CallKind::train,
          .role = role,
          .reads = std::move(reads),
          .fn = std::move(fn)};
}

namespace {

/// Adds the roles of agents.with that the workflow has for nothing else.
void add_second_roles(Workflow& workflow, const Settings& settings) {
  const auto* traits = find_workflow_traits(settings.workflow);
  for (const auto& name : agents_of(settings).with) {
    const auto* role = traits == nullptr ? nullptr : traits->find_role(name);
    if (role != nullptr && role->needs_key == "agents.with")
      workflow.roles.push_back({.name = name});
  }
}

} // namespace

void add_agents(Workflow& workflow, const Settings& settings) {
  if (agents_of(settings).command.empty())
    return;
  add_second_roles(workflow, settings);
  const bool by_number = settings.reward.kind == "agents";
  for (auto& call : workflow.calls) {
    const bool is_led = call.fn == "generate";
    call.by.user_actor |= is_led;
    if (is_led && call.by.with.empty())
      call.by.with = agents_of(settings).with;
    if (by_number && is_led)
      call.writes.emplace_back("agent_rewards");
    if (by_number && call.fn == "rewards")
      call.reads.emplace_back("agent_rewards");
  }
}

void add_scored_responses(Workflow& workflow, const Settings& settings) {
  workflow.calls.push_back(generate_call(settings));
  add_reward(workflow, settings);
  add_agents(workflow, settings);
}

void add_greedy_responses(Workflow& workflow) {
  const auto makers = makers_of(workflow, {"scores"});
  std::vector<Call> twins;
  for (const auto& call : workflow.calls)
    if (makers.contains(call.name))
      twins.emplace_back(twin_of(workflow, call, "greedy_")).greedy = true;
  workflow.calls.insert(workflow.calls.end(), twins.begin(), twins.end());
}

void add_rounds(Workflow& workflow, const Settings& settings) {
  const auto rounds
    = static_cast<std::uint32_t>(settings.algorithm.group.rounds);
  if (rounds == 1)
    return;
  const auto makers = makers_of(workflow, {"scores"});
  auto after = workflow.calls.begin();
  for (auto call = workflow.calls.begin(); call != workflow.calls.end(); ++call)
    if (makers.contains(call->name)) {
      call->rows.rounds = rounds;
      after = call + 1;
    }
  workflow.calls.insert(after, {.name = "keep_groups",
                                .kind = CallKind::function,
                                .reads = {"scores"},
                                .fn = "keep_groups",
                                .rows = {.rounds = rounds}});
  workflow.carried.push_back({.name = "kept_groups"});
}

void add_loss_keys(Call& advantages, Call& train, const Settings& settings) {
  if (!chooses_cov_tokens(settings))
    return;
  if (std::ranges::find(advantages.reads, "logprobs") == advantages.reads.end())
    advantages.reads.emplace_back("logprobs");
  advantages.writes.emplace_back("cov_tokens");
  train.reads.emplace_back("cov_tokens");
}

void add_sampling_mask(Workflow& workflow, const Settings& settings) {
  if (!settings.algorithm.loss.sampling_mask)
    return;
  for (auto& call : workflow.calls) {
    const bool writes = call.kind == CallKind::generate && !call.greedy;
    const bool reads = call.fn == "logprobs" || call.fn == "ppo_actor_loss";
    for (const char* key : {"kept_counts", "kept_ids"}) {
      if (writes)
        call.writes.emplace_back(key);
      if (reads)
        call.reads.emplace_back(key);
    }
  }
}

void add_routing_replay(Workflow& workflow, const Settings& settings) {
  if (!settings.algorithm.loss.routing_replay)
    return;
  for (auto& call : workflow.calls) {
    const bool is_actors = call.role == "actor";
    if (call.kind == CallKind::generate && !call.greedy)
      call.writes.emplace_back("routed_experts");
    if (is_actors && (call.fn == "logprobs" || call.fn == "ppo_actor_loss"))
      call.reads.emplace_back("routed_experts");
  }
}

bool leaves_out_samples(const Settings& settings) {
  return settings.reward.long_response.mask_truncated
         || (settings.reward.kind != "model"
             && settings.reward.on_error == "skip");
}

void train_on_kept_only(Call& train) {
  std::ranges::replace(train.reads, "loss_mask", "train_mask");
  train.renames.push_back({"train_mask", "loss_mask"});
}

} // namespace troupe::plans::internal
