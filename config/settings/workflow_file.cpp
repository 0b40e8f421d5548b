#include "config/settings/workflow_file.hpp"

#include "config/base/did_you_mean.hpp"
#include "config/settings/user_sections.hpp"
#include "config/settings/workflow_calls.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {

namespace {

/// Texts of files that are on another host, by their names.
std::map<std::string, std::string>& workflow_texts() {
  static std::map<std::string, std::string> texts;
  return texts;
}

struct GroupName {
  const char* name;
  SettingsGroup group;
};
constexpr GroupName group_names[]
  = {{"rollout", SettingsGroup::rollout},
     {"sequences", SettingsGroup::sequences},
     {"rewards", SettingsGroup::rewards},
     {"agents", SettingsGroup::agents},
     {"advantages", SettingsGroup::advantages},
     {"policy", SettingsGroup::policy},
     {"critic", SettingsGroup::critic},
     {"preference", SettingsGroup::preference},
     {"distillation", SettingsGroup::distillation},
     {"labels", SettingsGroup::labels},
     {"reward_pairs", SettingsGroup::reward_pairs},
     {"updates", SettingsGroup::updates},
     {"own_actors", SettingsGroup::user_actors}};

/// Reads the groups of settings that the workflow reads, and the program's
/// sections.
void read_file_groups(const YamlNode& node, WorkflowTraits& traits) {
  std::map<std::string, SettingsGroup> groups;
  std::vector<std::string> known;
  for (const auto& [name, group] : group_names) {
    groups[name] = group;
    known.emplace_back(name);
  }
  for (const auto& [name, values] : user_settings_defaults())
    known.push_back(name);
  if (!node.is_sequence())
    file_mistake(node, "settings", "a list of groups", describe(node),
                 "[" + known.front() + "]");
  for (const auto& item : node.items) {
    const auto group = groups.find(item.text);
    if (!item.is_scalar() || std::ranges::find(known, item.text) == known.end())
      file_mistake(item, "settings", "a group of settings: " + join_or(known),
                   describe(item), nearest_word(item.text, known));
    if (group == groups.end())
      traits.sections.push_back(item.text);
    else
      traits.groups.push_back(group->second);
  }
}

const YamlNode& file_mapping(const YamlNode& tree, const std::string& key) {
  const YamlNode* node = tree.find(key);
  if (node == nullptr || !node->is_mapping())
    file_mistake(node == nullptr ? tree : *node, key, "a mapping of names",
                 node == nullptr ? "nothing" : describe(*node),
                 key == "roles" ? "roles: {actor: {trained: true}}"
                                : "calls: {actor_gen: {generate: actor}}");
  return *node;
}

RoleTraits file_role(const std::string& name, const YamlNode& node) {
  const auto path = "roles." + name;
  check_file_keys(node, path, {"trained", "scalar_head", "like", "follows"});
  RoleTraits role{.name = name};
  for (const auto& [key, value] : node.entries)
    if (key == "like" || key == "follows")
      (key == "like" ? role.default_path_of : role.ema)
        = yaml_text(value, path + "." + key);
    else
      (key == "trained" ? role.trained : role.scalar_head)
        = yaml_bool(value, path + "." + key);
  return role;
}

void check_likes(const WorkflowFile& workflow) {
  std::vector<std::string> names;
  for (const auto& role : workflow.traits.roles)
    names.push_back(role.name);
  for (const auto& role : workflow.traits.roles)
    if (const auto& like = role.default_path_of;
        !like.empty() && std::ranges::find(names, like) == names.end())
      throw ConfigError({.place = workflow.places.at("roles." + role.name),
                         .path = "roles." + role.name + ".like",
                         .expected = "another role",
                         .got = "'" + like + "'",
                         .hint = nearest_word(like, names)});
}

/// Reads values that replace settings' defaults, checked like a user's.
void read_defaults(const YamlNode& node, const std::string& path,
                   WorkflowTraits& traits) {
  if (node.is_mapping()) {
    for (const auto& [key, value] : node.entries)
      read_defaults(value, path.empty() ? key : path + "." + key, traits);
    return;
  }
  const auto [field, role] = find_field(path);
  const auto any = [](const Field&) { return true; };
  if (is_section(path))
    file_mistake(node, "defaults." + path, "a mapping of settings",
                 describe(node));
  if (field == nullptr)
    file_mistake(node, "defaults." + path, "a known setting", "'" + path + "'",
                 "defaults." + meant_setting(path, any));
  if (!node.is_scalar() || !role.empty())
    file_mistake(node, "defaults." + path,
                 role.empty() ? "one value" : "no setting of a model",
                 describe(node));
  Settings scratch;
  read_value(*field, scratch, role, node, "defaults." + path);
  traits.defaults.emplace_back(path, node.text);
}

/// Reads names of metrics and the keys whose means they are.
std::vector<FileMetric> file_metrics(const YamlNode& node) {
  if (!node.is_mapping())
    file_mistake(node, "metrics", "a mapping of names to keys", describe(node),
                 "{tool/score: tool_score}");
  std::vector<FileMetric> metrics;
  for (const auto& [name, key] : node.entries)
    metrics.push_back({.name = name,
                       .key = yaml_text(key, "metrics." + name),
                       .place = key.place});
  return metrics;
}

DataKind file_data(const std::vector<FileCall>& calls) {
  const auto any_reads = [&](const char* key) {
    return std::ranges::any_of(calls, [key](const FileCall& call) {
      return std::ranges::find(call.reads, key) != call.reads.end();
    });
  };
  if (std::ranges::find(calls, "generate", &FileCall::kind) != calls.end())
    return DataKind::prompts;
  if (any_reads("chosen_ids"))
    return DataKind::preference;
  return any_reads("desirable") ? DataKind::labelled : DataKind::sft;
}

} // namespace

std::string word_of(SettingsGroup group) {
  const auto* at = std::ranges::find(group_names, group, &GroupName::group);
  return at == std::end(group_names) ? "" : at->name;
}

void use_workflow_text(const std::string& file, std::string text) {
  workflow_texts()[file] = std::move(text);
}

bool is_workflow_file(const std::string& workflow) {
  return workflow.ends_with(".yaml") || workflow.ends_with(".yml");
}

WorkflowFile read_workflow_file(const std::string& file) {
  const auto given = workflow_texts().find(file);
  const YamlNode tree = given == workflow_texts().end()
                          ? read_yaml(file)
                          : parse_yaml(given->second, file);
  check_file_keys(tree, "",
                  {"settings", "defaults", "roles", "calls", "metrics"});
  WorkflowFile workflow;
  workflow.traits.name = file;
  workflow.traits.sentence = "the calls of the file";
  for (const auto& [name, node] : file_mapping(tree, "roles").entries) {
    workflow.traits.roles.push_back(file_role(name, node));
    workflow.places["roles." + name] = node.place;
  }
  for (const auto& [name, node] : file_mapping(tree, "calls").entries) {
    workflow.calls.push_back(read_file_call(name, node));
    workflow.places["calls." + name] = node.place;
  }
  if (const YamlNode* metrics = tree.find("metrics"))
    workflow.metrics = file_metrics(*metrics);
  check_likes(workflow);
  check_file_calls(workflow);
  if (const YamlNode* groups = tree.find("settings"))
    read_file_groups(*groups, workflow.traits);
  if (std::ranges::any_of(workflow.calls, [](const FileCall& call) {
        return call.python.has_value();
      }))
    workflow.traits.groups.push_back(SettingsGroup::user_actors);
  if (const YamlNode* defaults = tree.find("defaults"))
    read_defaults(*defaults, "", workflow.traits);
  workflow.traits.data = file_data(workflow.calls);
  return workflow;
}

double initial_value(const FileCarried& value, const Settings& settings) {
  if (value.setting.empty())
    return value.initial;
  const auto [field, role] = find_field(value.setting);
  Settings copy = settings; // slots are for writing
  const auto slot = field->slot(copy, role);
  return std::visit(
    [](const auto& number) -> double {
      if constexpr (requires { static_cast<double>(*number); })
        return static_cast<double>(*number);
      else
        throw InvariantError("a carried value begins with no number");
    },
    slot);
}

} // namespace troupe
