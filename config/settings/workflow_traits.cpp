#include "config/settings/workflow_traits.hpp"

#include "config/base/error.hpp"

#include <algorithm>

namespace troupe {

namespace {

using enum SettingsGroup;

/// The role that programs of agents.command may ask beside the actor.
RoleTraits opponent_role() {
  return {.name = "opponent",
          .needs_key = "agents.with",
          .needs_value = {"[opponent]"},
          .default_path_of = "actor"};
}

WorkflowTraits traits_sft() {
  return {.name = "sft",
          .sentence = "supervised fine-tuning",
          .data = DataKind::sft,
          .groups = {sequences},
          .roles = {{.name = "actor", .trained = true}}};
}

WorkflowTraits traits_reward() {
  return {.name = "reward",
          .sentence = "a reward model from preference pairs",
          .data = DataKind::preference,
          .groups = {sequences, reward_pairs},
          .roles = {{.name = "reward", .trained = true, .scalar_head = true}}};
}

WorkflowTraits traits_dpo() {
  return {.name = "dpo",
          .sentence = "direct preference optimisation, without a reward model",
          .data = DataKind::preference,
          .groups = {sequences, preference},
          .roles = {{.name = "actor", .trained = true},
                    {.name = "ref",
                     .needs_key = "algorithm.pair_loss",
                     .needs_value = {"dpo", "ipo"},
                     .default_path_of = "actor"}}};
}

WorkflowTraits traits_kto() {
  return {.name = "kto",
          .sentence = "preference optimisation from responses that are "
                      "labelled one by one",
          .data = DataKind::labelled,
          .groups = {sequences, labels},
          .roles = {{.name = "actor", .trained = true},
                    {.name = "ref", .default_path_of = "actor"}}};
}

WorkflowTraits traits_ppo() {
  return {.name = "ppo",
          .sentence = "reinforcement learning with a critic",
          .data = DataKind::prompts,
          .groups
          = {rollout, rewards, agents, advantages, policy, critic, updates},
          .roles = {{.name = "actor", .trained = true},
                    {.name = "critic", .trained = true, .scalar_head = true},
                    {.name = "ref",
                     .needs_key = "algorithm.kl_in",
                     .needs_value = {"reward", "loss"},
                     .default_path_of = "actor"},
                    {.name = "reward",
                     .scalar_head = true,
                     .needs_key = "reward.kind",
                     .needs_value = {"model"}},
                    opponent_role()}};
}

WorkflowTraits traits_grpo() {
  return {.name = "grpo",
          .sentence = "reinforcement learning by comparing responses to a "
                      "prompt",
          .data = DataKind::prompts,
          .groups = {rollout, rewards, agents, advantages, policy, updates},
          .roles = {{.name = "actor", .trained = true},
                    {.name = "ref",
                     .needs_key = "algorithm.kl_in",
                     .needs_value = {"reward", "loss"},
                     .default_path_of = "actor"},
                    {.name = "reward",
                     .scalar_head = true,
                     .needs_key = "reward.kind",
                     .needs_value = {"model"}},
                    opponent_role()},
          .defaults = {{"algorithm.advantage", "group"},
                       {"algorithm.kl_in", "loss"},
                       {"algorithm.kl_estimator", "k3"}}};
}

WorkflowTraits traits_distillation() {
  return {.name = "distillation",
          .sentence = "on-policy distillation: a teacher scores the responses "
                      "of the model that is trained",
          .data = DataKind::prompts,
          .groups = {rollout, distillation, updates},
          .roles = {{.name = "actor", .trained = true}, {.name = "teacher"}}};
}

/// Returns the traits of a command, whose only model is an actor, or a reward
/// model if it has a scalar head.
WorkflowTraits traits_command(std::string name, DataKind data,
                              std::vector<SettingsGroup> groups) {
  return {.name = std::move(name),
          .sentence = "",
          .data = data,
          .groups = std::move(groups),
          .roles = {{.name = "actor"}, {.name = "reward", .scalar_head = true}},
          .is_command = true};
}

std::deque<WorkflowTraits> built_in_workflows() {
  return {traits_sft(),
          traits_reward(),
          traits_dpo(),
          traits_kto(),
          traits_ppo(),
          traits_grpo(),
          traits_distillation(),
          traits_command("generate", DataKind::prompts, {rollout, command}),
          traits_command("score", DataKind::score, {rollout}),
          traits_command("convert", DataKind::prompts, {})};
}

std::deque<WorkflowTraits>& mutable_workflow_table() {
  static std::deque<WorkflowTraits> table = built_in_workflows();
  return table;
}

} // namespace

bool WorkflowTraits::reads(SettingsGroup group) const {
  return std::ranges::find(groups, group) != groups.end();
}

const RoleTraits* WorkflowTraits::find_role(std::string_view role) const {
  const auto at = std::ranges::find(roles, role, &RoleTraits::name);
  return at == roles.end() ? nullptr : &*at;
}

const std::deque<WorkflowTraits>& workflow_table() {
  return mutable_workflow_table();
}

void add_workflow_traits(WorkflowTraits traits) {
  if (find_workflow_traits(traits.name))
    throw ConfigError({.place = {},
                       .path = "workflow",
                       .expected = "a new name",
                       .got = "'" + traits.name + "', which is there already",
                       .hint = "another name"});
  mutable_workflow_table().push_back(std::move(traits));
}

void forget_added_workflows() {
  mutable_workflow_table() = built_in_workflows();
}

const WorkflowTraits* find_workflow_traits(std::string_view name) {
  const auto& table = workflow_table();
  const auto at = std::ranges::find(table, name, &WorkflowTraits::name);
  return at == table.end() ? nullptr : &*at;
}

std::vector<std::string> workflow_names() {
  std::vector<std::string> names;
  for (const auto& traits : workflow_table())
    if (!traits.is_command)
      names.push_back(traits.name);
  return names;
}

bool workflow_reads(std::string_view name, SettingsGroup group) {
  const auto* traits = find_workflow_traits(name);
  return traits != nullptr && traits->reads(group);
}

DataKind workflow_data(std::string_view name) {
  const auto* traits = find_workflow_traits(name);
  return traits == nullptr ? DataKind::prompts : traits->data;
}

} // namespace troupe
