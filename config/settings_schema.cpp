#include "config/settings_schema.hpp"

#include <algorithm>
#include <iterator>

namespace troupe {

Field& Field::one_of(std::vector<std::string> values) {
  choices = std::move(values);
  return *this;
}

Field& Field::or_own(bool (*is_own)(const std::string&)) {
  is_own_choice = is_own;
  return *this;
}

Field& Field::at_least(double value) {
  least = value;
  return *this;
}

Field& Field::above(double value) {
  above_least = true;
  return at_least(value);
}

Field& Field::at_most(double value) {
  most = value;
  return *this;
}

Field& Field::below(double value) {
  below_most = true;
  return at_most(value);
}

Field& Field::shaped(std::string text, bool (*fits)(const std::string&)) {
  shape = std::move(text);
  fits_shape = fits;
  return *this;
}

Field& Field::required() {
  is_required = true;
  return *this;
}

Field& Field::trained_only() {
  is_trained_only = true;
  return *this;
}

Field& Field::of(std::vector<std::string> names) {
  workflows = std::move(names);
  return *this;
}

Field& Field::needs(std::string key, std::vector<std::string> values) {
  needs_key = std::move(key);
  needs_value = std::move(values);
  return *this;
}

Field& Field::only_runs(std::vector<std::string> values) {
  runs = std::move(values);
  return *this;
}

const std::vector<Section>& settings_sections() {
  static const std::vector<Section> sections = {
    {"run", "The run: its name, length, folder and checkpoints.", {}},
    {"cluster", "Hosts, devices and worker processes.", {}},
    {"models",
     "The weights of each role: actor (sft); reward (reward); actor, critic, "
     "ref and reward (ppo).",
     {}},
    {"models.ROLE", "Weights and optimizer of one role.", {}},
    {"models.ROLE.optimizer", "AdamW; of trained roles only.", {}},
    {"data", "The rows to train on.", {}},
    {"rollout", "How responses are generated.", {"ppo"}},
    {"algorithm", "Advantages and losses of reinforcement learning.", {"ppo"}},
    {"reward", "Where rewards come from.", {"ppo"}},
    {"eval", "Evaluation on held-out rows.", {}},
    {"metrics", "Where the numbers of each step go.", {}},
    {"trace", "Recording of events.", {}},
  };
  return sections;
}

const std::vector<Field>& settings_fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all;
    for (auto* part : {make_run_fields, make_model_and_data_fields,
                       make_algorithm_fields, make_output_fields})
      std::ranges::move(part(), std::back_inserter(all));
    return all;
  }();
  return fields;
}

namespace {

constexpr std::string_view models_prefix = "models.";
constexpr std::string_view role_word = "ROLE";

/// "models.actor.path" -> {"models.ROLE.path", "actor"}; others as they are.
std::pair<std::string, std::string> split_role(const std::string& path) {
  if (!path.starts_with(models_prefix))
    return {path, ""};
  const auto rest = path.substr(models_prefix.size());
  const auto role = rest.substr(0, rest.find('.'));
  std::string generic(models_prefix);
  generic += role_word;
  return {generic + rest.substr(role.size()), role};
}

const std::vector<std::string>& trained_roles(const std::string& workflow) {
  static const std::map<std::string, std::vector<std::string>> trained = {
    {"sft", {"actor"}}, {"reward", {"reward"}}, {"ppo", {"actor", "critic"}}};
  static const std::vector<std::string> none;
  const auto at = trained.find(workflow);
  return at == trained.end() ? none : at->second;
}

} // namespace

std::pair<const Field*, std::string> find_field(const std::string& path) {
  const auto [generic, role] = split_role(path);
  for (const auto& field : settings_fields())
    if (field.path == generic)
      return {&field, role};
  return {nullptr, ""};
}

bool is_section(const std::string& path) {
  const auto generic = split_role(path).first;
  return std::ranges::any_of(settings_sections(), [&](const Section& section) {
    return section.name == generic;
  });
}

std::string path_with_role(const std::string& path, const std::string& role) {
  const auto at = path.find(role_word);
  return at == path.npos || role.empty()
           ? path
           : path.substr(0, at) + role + path.substr(at + role_word.size());
}

bool applies(const std::vector<std::string>& workflows,
             const std::string& workflow) {
  return workflows.empty()
         || std::ranges::find(workflows, workflow) != workflows.end();
}

bool section_applies(const std::string& path, const std::string& workflow) {
  const auto name = path.substr(0, path.find('.'));
  for (const auto& section : settings_sections())
    if (section.name == name)
      return applies(section.workflows, workflow);
  return true;
}

bool is_verb_workflow(const std::string& workflow) {
  return workflow == "generate" || workflow == "score" || workflow == "convert";
}

std::vector<std::string> roles_of(const std::string& workflow) {
  if (workflow == "ppo")
    return {"actor", "critic", "ref", "reward"};
  if (is_verb_workflow(workflow))
    return {"actor", "reward"};
  return trained_roles(workflow);
}

bool is_trained(const std::string& workflow, const std::string& role) {
  const auto& roles = trained_roles(workflow);
  return std::ranges::find(roles, role) != roles.end();
}

bool uses_role(const Settings& settings, const std::string& role) {
  if (settings.workflow == "ppo" && role == "ref")
    return settings.algorithm.kl_in != "none";
  if (settings.workflow == "ppo" && role == "reward")
    return settings.reward.kind == "model";
  if (is_verb_workflow(settings.workflow))
    return settings.models.contains(role);
  const auto roles = roles_of(settings.workflow);
  return std::ranges::find(roles, role) != roles.end();
}

bool needs_hold(const Field& field, const Settings& settings) {
  if (field.needs_key.empty())
    return true;
  const Field* other = find_field(field.needs_key).first;
  const auto value = value_text(*other, settings, "");
  if (field.needs_value.empty())
    return value != default_text(*other);
  return applies(field.needs_value, value);
}

std::string join_or(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

} // namespace troupe
