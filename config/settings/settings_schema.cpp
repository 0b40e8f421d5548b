#include "config/settings/settings_schema.hpp"

#include <algorithm>
#include <iterator>

namespace troupe {

Field& Field::one_of(std::vector<std::string> values) {
  choices = std::move(values);
  return *this;
}

Field& Field::one_of(std::vector<std::string> (*values)()) {
  choices_now = values;
  return *this;
}

Field& Field::or_own(bool (*is_own)(const std::string&)) {
  is_own_choice = is_own;
  return *this;
}

Field& Field::at_least(double value) {
  range.least = value;
  return *this;
}

Field& Field::above(double value) {
  range.above_least = true;
  return at_least(value);
}

Field& Field::at_most(double value) {
  range.most = value;
  return *this;
}

Field& Field::below(double value) {
  range.below_most = true;
  return at_most(value);
}

Field& Field::shaped(std::string text, bool (*fits)(const std::string&)) {
  shape = std::move(text);
  fits_shape = fits;
  return *this;
}

Field& Field::secret() {
  is_secret = true;
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

Field& Field::frozen_only() {
  is_frozen_only = true;
  return *this;
}

Field& Field::of(SettingsGroup readers) {
  return of({readers});
}

Field& Field::of(std::initializer_list<SettingsGroup> readers) {
  groups = readers;
  return *this;
}

Field& Field::needs(std::string key, std::vector<std::string> values) {
  needs_key = std::move(key);
  needs_value = std::move(values);
  return *this;
}

namespace {

std::vector<SettingsSection>& mutable_sections() {
  static std::vector<SettingsSection> sections = {
    {"run", "The run: its name, length, folder and checkpoints."},
    {"cluster", "Hosts, devices and worker processes."},
    {"models", "The weights of each role of the workflow."},
    {"models.ROLE", "Weights and optimizer of one role."},
    {"models.ROLE.optimizer", "AdamW; of trained roles only."},
    {"models.ROLE.lora", "Low-rank adapters (LoRA); of trained roles only."},
    {"data", "The rows to train on."},
    {"rollout", "How responses are generated."},
    {"algorithm", "Advantages and losses of reinforcement learning."},
    {"algorithm.dynamic_sampling",
     "More prompts where the responses to one all have the same reward."},
    {"algorithm.correction",
     "Weights for samples that were drawn by other numbers than training "
     "computes."},
    {"algorithm.distillation", "What a student learns of its teacher."},
    {"reward", "Where rewards come from."},
    {"agents", "A program that leads the conversation of each sample."},
    {"eval", "Evaluation on held-out rows."},
    {"metrics", "Where the numbers of each step go."},
    {"trace", "Recording of events."},
  };
  return sections;
}

std::vector<Field>& mutable_fields() {
  static std::vector<Field> fields = [] {
    std::vector<Field> all;
    for (auto* part :
         {make_run_fields, make_model_and_data_fields, make_algorithm_fields,
          make_agent_fields, make_output_fields})
      std::ranges::move(part(), std::back_inserter(all));
    return all;
  }();
  return fields;
}

} // namespace

const std::vector<SettingsSection>& settings_sections() {
  return mutable_sections();
}

const std::vector<Field>& settings_fields() {
  return mutable_fields();
}

void add_to_settings_table(SettingsSection section, std::vector<Field> fields) {
  mutable_sections().push_back(std::move(section));
  std::ranges::move(fields, std::back_inserter(mutable_fields()));
}

void remove_from_settings_table(const std::string& user_section) {
  std::erase_if(mutable_sections(), [&](const SettingsSection& section) {
    return section.name == user_section;
  });
  std::erase_if(mutable_fields(), [&](const Field& field) {
    return field.user_section == user_section;
  });
}

namespace {

constexpr std::string_view models_prefix = "models.";
constexpr std::string_view role_word = "ROLE";

/// Returns {"models.ROLE.path", "actor"} for "models.actor.path"; other paths
/// unchanged.
std::pair<std::string, std::string> split_role(const std::string& path) {
  if (!path.starts_with(models_prefix))
    return {path, ""};
  const auto rest = path.substr(models_prefix.size());
  const auto role = rest.substr(0, rest.find('.'));
  std::string generic(models_prefix);
  generic += role_word;
  return {generic + rest.substr(role.size()), role};
}

/// Returns "rollout" for "rollout.n"; "" for a setting without a section.
std::string top_section(const std::string& path) {
  const auto dot = path.find('.');
  return dot == path.npos ? "" : path.substr(0, dot);
}

bool reads(const WorkflowTraits& traits, const Field& field) {
  if (!field.user_section.empty())
    return std::ranges::find(traits.sections, field.user_section)
           != traits.sections.end();
  return field.groups.empty()
         || std::ranges::any_of(field.groups, [&](SettingsGroup group) {
              return traits.reads(group);
            });
}

/// Returns the workflows that `wanted` selects, those of commands only if there
/// are no others.
template <class Wanted>
std::vector<std::string> pick_workflows(Wanted&& wanted) {
  std::vector<std::string> names;
  for (const bool commands : {false, true}) {
    for (const auto& traits : workflow_table())
      if (traits.is_command == commands && wanted(traits))
        names.push_back(traits.name);
    if (!names.empty())
      break;
  }
  return names;
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
  return std::ranges::any_of(
    settings_sections(),
    [&](const SettingsSection& section) { return section.name == generic; });
}

std::string path_with_role(const std::string& path, const std::string& role) {
  const auto at = path.find(role_word);
  return at == path.npos || role.empty()
           ? path
           : path.substr(0, at) + role + path.substr(at + role_word.size());
}

std::vector<std::string> choices_of(const Field& field) {
  return field.choices_now == nullptr ? field.choices : field.choices_now();
}

bool holds(const std::vector<std::string>& words, const std::string& word) {
  return words.empty() || std::ranges::find(words, word) != words.end();
}

bool field_applies(const Field& field, const std::string& workflow) {
  const auto* traits = find_workflow_traits(workflow);
  return traits == nullptr ? field.groups.empty() && field.user_section.empty()
                           : reads(*traits, field);
}

bool section_applies(const std::string& path, const std::string& workflow) {
  const auto name = top_section(path);
  return name.empty()
         || std::ranges::any_of(settings_fields(), [&](const Field& field) {
              return top_section(field.path) == name
                     && field_applies(field, workflow);
            });
}

std::vector<std::string> readers_of(const Field& field) {
  if (field.groups.empty() && field.user_section.empty())
    return {};
  return pick_workflows(
    [&](const WorkflowTraits& traits) { return reads(traits, field); });
}

std::vector<std::string> readers_of_section(const std::string& name) {
  const auto& fields = settings_fields();
  const auto is_inside
    = [&](const Field& field) { return top_section(field.path) == name; };
  if (std::ranges::any_of(fields, [&](const Field& field) {
        return is_inside(field) && readers_of(field).empty();
      }))
    return {};
  return pick_workflows([&](const WorkflowTraits& traits) {
    return std::ranges::any_of(fields, [&](const Field& field) {
      return is_inside(field) && reads(traits, field);
    });
  });
}

bool is_command_workflow(const std::string& workflow) {
  const auto* traits = find_workflow_traits(workflow);
  return traits != nullptr && traits->is_command;
}

std::vector<std::string> roles_of(const std::string& workflow) {
  std::vector<std::string> names;
  if (const auto* traits = find_workflow_traits(workflow))
    for (const auto& role : traits->roles)
      names.push_back(role.name);
  return names;
}

bool is_trained(const std::string& workflow, const std::string& role) {
  const auto* traits = find_workflow_traits(workflow);
  const auto* found = traits == nullptr ? nullptr : traits->find_role(role);
  return found != nullptr && found->trained;
}

bool is_for_role(const Field& field, const std::string& workflow,
                 const std::string& role) {
  return is_trained(workflow, role) ? !field.is_frozen_only
                                    : !field.is_trained_only;
}

bool uses_role(const Settings& settings, const std::string& role) {
  const auto* traits = find_workflow_traits(settings.workflow);
  const auto* found = traits == nullptr ? nullptr : traits->find_role(role);
  if (found == nullptr)
    return false;
  if (traits->is_command)
    return settings.models.contains(role);
  return found->needs_key.empty()
         || (found->needs_key == "agents.with"
             && std::ranges::find(agents_of(settings).with, role)
                  != agents_of(settings).with.end())
         || holds(
           found->needs_value,
           value_text(*find_field(found->needs_key).first, settings, ""));
}

bool needs_hold(const Field& field, const Settings& settings) {
  if (field.needs_key.empty())
    return true;
  const Field* other = find_field(field.needs_key).first;
  const auto value = value_text(*other, settings, "");
  if (field.needs_value.empty())
    return value != default_text(*other);
  return holds(field.needs_value, value);
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
