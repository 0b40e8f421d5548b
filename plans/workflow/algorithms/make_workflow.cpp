// Makes a checked workflow from settings, with errors at the setting's place.
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "config/settings/workflow_file.hpp"
#include "config/settings/workflow_traits.hpp"
#include "plans/plan/plan_names.hpp"
#include "plans/workflow/served_calls.hpp"
#include "plans/workflow/workflow.hpp"
#include "plans/workflow/workflow_file.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace troupe::plans {

namespace {

std::string make_workflow_list(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

void require_value(const Settings& settings, const std::string& key,
                   const std::string& value,
                   const std::vector<std::string>& valid) {
  if (std::ranges::find(valid, value) != valid.end())
    return;
  const auto near = nearest(value, valid);
  throw ConfigError({.place = place_of(settings, key),
                     .path = key,
                     .expected = (valid.size() > 1 ? "one of " : "")
                                 + make_workflow_list(valid),
                     .got = value.empty() ? "nothing" : "'" + value + "'",
                     .hint = near.empty() ? valid.front() : near});
}

/// Checks that every model has a role. A role that other settings switch off
/// may keep an unused model: `kl_in` is changed more often than models are.
void check_models(const Settings& settings, const Workflow& workflow) {
  std::vector<std::string> names;
  for (const auto& role : workflow.roles)
    names.push_back(role.name);
  const auto known = roles_of(settings.workflow);
  for (const auto& [role, model] : settings.models) {
    if (workflow.find_role(role)
        || std::ranges::find(known, role) != known.end())
      continue;
    const auto near = nearest(role, names);
    throw ConfigError({.place = place_of(settings, "models." + role),
                       .path = "models." + role,
                       .expected = "a role of workflow " + workflow.name + " ("
                                   + make_workflow_list(names) + ")",
                       .got = "'" + role + "'",
                       .hint = near.empty() ? "" : near});
  }
}

/// Checks that EMA settings and EMA roles go together.
void check_ema(const Settings& settings, const Role& role,
               const ModelSettings& model) {
  const auto model_path = "models." + role.name;
  const auto decay = model_path + ".ema_decay";
  const auto wrong = [&](const std::string& path, const std::string& expected,
                         const std::string& got, const std::string& hint) {
    throw ConfigError(
      {.place = place_of(settings, was_set(settings, path) ? path : model_path),
       .path = path,
       .expected = expected,
       .got = got,
       .hint = hint});
  };
  const bool ema_updates = model.ema_decay < 1;
  if (!role.ema && ema_updates)
    wrong(decay, "it only for a role that follows a trained one",
          "it for '" + role.name + "'", "removing it (" + decay + "=null)");
  if (role.ema && !ema_updates && !was_set(settings, decay))
    wrong(decay,
          "a number from 0 to 1, as " + role.name + " follows "
            + role.ema->role,
          "nothing", decay + "=0.99");
  if (!ema_updates && model.ema_every != 1)
    wrong(model_path + ".ema_every", decay + " < 1 beside it",
          "one that would be ignored", decay + "=0.99");
}

/// Sets the EMA of roles; with ema_decay 1 such a role is frozen.
void set_followers(const Settings& settings, Workflow& workflow) {
  for (auto& role : workflow.roles) {
    const auto found = settings.models.find(role.name);
    if (found == settings.models.end())
      continue;
    const auto& model = found->second;
    check_ema(settings, role, model);
    if (model.ema_decay == 1)
      role.ema.reset();
    if (role.ema) {
      role.ema->decay = model.ema_decay;
      role.ema->every = static_cast<std::uint32_t>(model.ema_every);
    }
  }
}

/// Lets the policy's training also train on rows of data.ptx.
void mix_ptx(const Settings& settings, Workflow& workflow) {
  if (ptx_rows(settings) == 0)
    return;
  const auto train
    = std::ranges::find(workflow.calls, "ppo_actor_loss", &Call::fn);
  if (train == workflow.calls.end())
    throw ConfigError({.place = place_of(settings, "data.ptx"),
                       .path = "data.ptx",
                       .expected = "a workflow that trains by ppo_actor_loss",
                       .got = "workflow " + workflow.name,
                       .hint = "data.ptx=null algorithm.ptx_coef=null"});
  train->rows.ptx = static_cast<std::uint32_t>(ptx_rows(settings));
}

/// PPO with settings that this version supports.
Workflow checked_ppo(const Settings& settings) {
  require_value(settings, "algorithm.advantage", settings.algorithm.advantage,
                {"gae"});
  return ppo_workflow(settings);
}

/// GRPO with consistent settings: only whole returns support a per-token KL.
Workflow checked_grpo(const Settings& settings) {
  const auto& algorithm = settings.algorithm;
  require_value(settings, "algorithm.advantage", algorithm.advantage,
                {"group", "rloo", "remax", "reinforce_pp"});
  if (algorithm.advantage != "reinforce_pp")
    require_value(settings, "algorithm.kl_in", algorithm.kl_in,
                  {"loss", "none"});
  return grpo_workflow(settings);
}

using Makers = std::map<std::string, WorkflowMaker, std::less<>>;

Makers& workflow_makers() {
  static Makers makers = {
    {"sft", sft_workflow},         {"reward", reward_workflow},
    {"dpo", dpo_workflow},         {"kto", kto_workflow},
    {"ppo", checked_ppo},          {"grpo", checked_grpo},
    {"score", score_workflow},     {"generate", generate_workflow},
    {"convert", convert_workflow}, {"distillation", distillation_workflow},
  };
  return makers;
}

} // namespace

void add_workflow_maker(const std::string& name, WorkflowMaker make) {
  if (!workflow_makers().emplace(name, std::move(make)).second)
    throw ConfigError({.place = {},
                       .path = "workflow",
                       .expected = "a new name",
                       .got = "'" + name + "', which is there already",
                       .hint = "another name"});
}

namespace {

Workflow find_workflow(const Settings& settings) {
  const auto& makers = workflow_makers();
  if (is_workflow_file(settings.workflow)) {
    const auto file = read_workflow_file(settings.workflow);
    const auto find = [&](const std::string& name) {
      const auto at = makers.find(name);
      return at == makers.end() ? std::nullopt
                                : std::optional(at->second(settings));
    };
    Workflow workflow = file_workflow(file, settings, find);
    check(workflow, file.places);
    set_followers(settings, workflow);
    mix_ptx(settings, workflow);
    return workflow;
  }
  const auto at = makers.find(settings.workflow);
  if (at == makers.end())
    require_value(settings, "workflow", settings.workflow, workflow_names());
  Workflow workflow = at->second(settings);
  if (is_command_workflow(settings.workflow))
    return workflow;
  check_models(settings, workflow);
  check(workflow);
  set_followers(settings, workflow);
  mix_ptx(settings, workflow);
  return workflow;
}

} // namespace

Workflow make_workflow(const Settings& settings) {
  auto workflow = find_workflow(settings);
  set_servers(settings, workflow);
  return workflow;
}

} // namespace troupe::plans
