// From settings to a checked workflow, with errors at the setting's place.
#include "config/error.hpp"
#include "config/settings.hpp"
#include "plans/nearest.hpp"
#include "plans/workflow.hpp"

#include <algorithm>

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

/// Every role of the workflow has a model and no model is without a role. The
/// reference model may be left out (the actor's start weights), and may stand
/// there unused: `kl_in` is switched more often than models are.
void check_models(const Settings& settings, const Workflow& workflow) {
  std::vector<std::string> names;
  for (const auto& role : workflow.roles)
    names.push_back(role.name);
  for (const auto& [role, model] : settings.models) {
    if (workflow.find_role(role) || role == "ref")
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

Workflow verb_workflow(const Settings& settings) {
  if (settings.workflow == "generate")
    return generate_workflow(settings);
  return settings.workflow == "score" ? score_workflow(settings)
                                      : convert_workflow(settings);
}

} // namespace

const std::vector<std::string>& workflow_names() {
  static const std::vector<std::string> names = {"sft", "reward", "ppo"};
  return names;
}

Workflow make_workflow(const Settings& settings) {
  if (is_verb_workflow(settings.workflow))
    return verb_workflow(settings);
  require_value(settings, "workflow", settings.workflow, workflow_names());
  Workflow workflow;
  if (settings.workflow == "sft") {
    workflow = sft_workflow(settings);
  } else if (settings.workflow == "reward") {
    workflow = reward_workflow(settings);
  } else {
    require_value(settings, "algorithm.advantage", settings.algorithm.advantage,
                  {"gae"});
    require_value(settings, "reward.kind", settings.reward.kind, {"model"});
    workflow = ppo_workflow(settings);
  }
  check_models(settings, workflow);
  check(workflow);
  return workflow;
}

} // namespace troupe::plans
