#include "config/workflow_file.hpp"

#include "config/nearest.hpp"
#include "config/settings_schema.hpp"
#include "config/yaml_tree.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

struct GroupName {
  const char* name;
  SettingsGroup group;
};
constexpr GroupName group_names[] = {{"rollout", SettingsGroup::rollout},
                                     {"sequences", SettingsGroup::sequences},
                                     {"rewards", SettingsGroup::rewards},
                                     {"advantages", SettingsGroup::advantages},
                                     {"policy", SettingsGroup::policy},
                                     {"critic", SettingsGroup::critic},
                                     {"preference", SettingsGroup::preference},
                                     {"updates", SettingsGroup::updates},
                                     {"own_actors", SettingsGroup::own_actors}};

[[noreturn]] void file_mistake(const YamlNode& node, const std::string& path,
                               const std::string& expected,
                               const std::string& got,
                               const std::string& hint = "") {
  throw ConfigError({.place = node.place,
                     .path = path,
                     .expected = expected,
                     .got = got,
                     .hint = hint});
}

/// Refuses keys of a mapping other than `known`.
void check_file_keys(const YamlNode& node, const std::string& path,
                     const std::vector<std::string>& known) {
  if (!node.is_mapping())
    file_mistake(node, path, "a mapping", describe(node));
  for (const auto& [key, value] : node.entries)
    if (std::ranges::find(known, key) == known.end())
      file_mistake(value, path.empty() ? key : path + "." + key, join_or(known),
                   "'" + key + "'", nearest_word(key, known));
}

SettingsGroup file_group(const YamlNode& node) {
  std::vector<std::string> known;
  for (const auto& [name, group] : group_names) {
    if (node.is_scalar() && node.text == name)
      return group;
    known.emplace_back(name);
  }
  file_mistake(node, "settings", "a group of settings: " + join_or(known),
               describe(node), nearest_word(node.text, known));
}

RoleTraits file_role(const std::string& name, const YamlNode& node) {
  const auto path = "roles." + name;
  check_file_keys(node, path, {"trained", "scalar_head", "like", "follows"});
  RoleTraits role{.name = name};
  for (const auto& [key, value] : node.entries)
    if (key == "like" || key == "follows")
      (key == "like" ? role.default_path_of : role.follows)
        = yaml_text(value, path + "." + key);
    else
      (key == "trained" ? role.trained : role.scalar_head)
        = yaml_bool(value, path + "." + key);
  return role;
}

/// A list of keys, or a mapping from keys to fn's words for them.
void read_file_keys(const YamlNode& node, const std::string& path,
                    FileCall& call, std::vector<std::string>& keys) {
  if (node.is_mapping()) {
    for (const auto& [key, word] : node.entries) {
      keys.push_back(key);
      if (yaml_text(word, path + "." + key) != key)
        call.renames[key] = word.text;
    }
    return;
  }
  if (!node.is_sequence())
    file_mistake(node, path, "a list of keys, or a mapping of keys to words",
                 describe(node));
  for (const auto& item : node.items)
    keys.push_back(yaml_text(item, path));
}

/// What generate and infer read and write where the file does not say.
void fill_in_call(FileCall& call, const YamlNode& node,
                  const std::string& path) {
  if (call.kind == "generate") {
    call.fn = "generate";
    if (call.reads.empty())
      call.reads = {"prompt_ids"};
    if (call.writes.empty())
      call.writes = {"sequence_ids", "loss_mask", "logprobs", "truncated"};
  }
  if (call.fn.empty())
    file_mistake(node, path + ".fn", "a name", "nothing");
  if (call.kind == "infer") {
    if (call.reads.empty())
      call.reads = {"sequence_ids"};
    if (call.fn == "logprobs" && call.reads.size() == 1)
      call.reads.emplace_back("loss_mask");
    if (call.writes.empty())
      call.writes = {call.fn};
  }
}

FileCall file_call(const std::string& name, const YamlNode& node) {
  const auto path = "calls." + name;
  check_file_keys(
    node, path,
    {"generate", "infer", "train", "function", "fn", "reads", "writes"});
  FileCall call{.name = name, .kind = "", .role = "", .fn = ""};
  for (const char* kind : {"generate", "infer", "train", "function"}) {
    const YamlNode* value = node.find(kind);
    if (value == nullptr)
      continue;
    if (!call.kind.empty())
      file_mistake(*value, path, "one of generate, infer, train or function",
                   call.kind + " and " + kind);
    call.kind = kind;
    (call.kind == "function" ? call.fn : call.role)
      = yaml_text(*value, path + "." + kind);
  }
  if (call.kind.empty())
    file_mistake(node, path, "one of generate, infer, train or function",
                 "none of them");
  if (const YamlNode* fn = node.find("fn"))
    call.fn = yaml_text(*fn, path + ".fn");
  if (const YamlNode* reads = node.find("reads"))
    read_file_keys(*reads, path + ".reads", call, call.reads);
  if (const YamlNode* writes = node.find("writes"))
    read_file_keys(*writes, path + ".writes", call, call.writes);
  fill_in_call(call, node, path);
  return call;
}

/// Weights that two calls of a step trained would have two next versions.
void check_one_training(const std::vector<FileCall>& earlier,
                        const FileCall& call, const YamlNode& node) {
  if (call.kind != "train")
    return;
  for (const auto& other : earlier)
    if (other.kind == "train" && other.role == call.role)
      file_mistake(*node.find("train"), "calls." + call.name + ".train",
                   "a role that no other call trains",
                   call.role + ", which " + other.name + " trains");
}

} // namespace

bool is_workflow_file(const std::string& workflow) {
  return workflow.ends_with(".yaml") || workflow.ends_with(".yml");
}

WorkflowFile read_workflow_file(const std::string& file) {
  const YamlNode tree = read_yaml(file);
  check_file_keys(tree, "", {"settings", "roles", "calls"});
  WorkflowFile workflow;
  workflow.traits.name = file;
  workflow.traits.sentence = "the calls of the file";
  const YamlNode* calls = tree.find("calls");
  const YamlNode* roles = tree.find("roles");
  if (calls == nullptr || !calls->is_mapping() || roles == nullptr
      || !roles->is_mapping())
    file_mistake(tree, calls == nullptr ? "calls" : "roles",
                 "mappings `roles` and `calls`", "none");
  for (const auto& [name, node] : roles->entries)
    workflow.traits.roles.push_back(file_role(name, node));
  for (const auto& [name, node] : calls->entries) {
    auto call = file_call(name, node);
    check_one_training(workflow.calls, call, node);
    workflow.calls.push_back(std::move(call));
  }
  if (const YamlNode* groups = tree.find("settings"))
    for (const auto& node : groups->items)
      workflow.traits.groups.push_back(file_group(node));
  const bool generates
    = std::ranges::find(workflow.calls, "generate", &FileCall::kind)
      != workflow.calls.end();
  workflow.traits.data = generates ? DataKind::prompts : DataKind::sft;
  return workflow;
}

} // namespace troupe
