#include "config/settings/workflow_calls.hpp"

#include "config/base/did_you_mean.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

const std::vector<std::string> inferences
  = {"logprobs", "top_logprobs", "values", "scores"};

/// Keys that a generation gives if a file names them.
const std::vector<std::string> all_generated
  = {"sequence_ids", "loss_mask", "logprobs",      "truncated",
     "kept_counts",  "kept_ids",  "routed_experts"};

/// Reads a list of keys, or a mapping from keys to the names that fn uses.
void read_file_keys(const YamlNode& node, const std::string& path,
                    FileCall& call, std::vector<std::string>& keys) {
  if (node.is_mapping()) {
    for (const auto& [key, word] : node.entries) {
      keys.push_back(key);
      if (yaml_text(word, path + "." + key) != key)
        call.renames.emplace_back(key, word.text);
    }
    return;
  }
  if (!node.is_sequence())
    file_mistake(node, path, "a list of keys, or a mapping of keys to words",
                 describe(node));
  for (const auto& item : node.items)
    keys.push_back(yaml_text(item, path));
}

bool is_number(const Field& field) {
  Settings scratch;
  const auto slot = field.slot(scratch, "");
  return std::holds_alternative<int*>(slot)
         || std::holds_alternative<std::uint64_t*>(slot)
         || std::holds_alternative<float*>(slot)
         || std::holds_alternative<double*>(slot);
}

/// Reads a number, or the name of a setting that holds one.
void read_initial(const YamlNode& node, const std::string& path,
                  FileCarried& value) {
  if (node.is_scalar() && !node.quoted && read_whole(node.text, value.initial)
      && std::isfinite(value.initial))
    return;
  const auto* field = find_field(node.text).first;
  if (!node.is_scalar() || field == nullptr || !is_number(*field))
    file_mistake(node, path, "a number, or a setting that is one",
                 describe(node),
                 node.is_scalar() ? meant_setting(node.text, &is_number) : "0");
  value.setting = node.text;
}

FileCarried file_carried(const std::string& name, const YamlNode& node,
                         const std::string& path) {
  FileCarried value{.name = name, .place = node.place};
  const YamlNode* initial = &node;
  if (node.is_mapping()) {
    check_file_keys(node, path, {"initial", "metric"});
    initial = node.find("initial");
    if (initial == nullptr)
      file_mistake(node, path + ".initial", "what the first step gets",
                   "nothing", "initial: 0");
    if (const YamlNode* metric = node.find("metric"))
      value.metric = yaml_text(*metric, path + ".metric");
  }
  read_initial(*initial, initial == &node ? path : path + ".initial", value);
  return value;
}

/// Reads carried values: numbers that only the call itself sees; shared ones
/// are keys.
void read_carried(const YamlNode& node, const std::string& path,
                  FileCall& call) {
  if (call.kind != "function")
    file_mistake(node, path, "it in a function",
                 "it in a call of kind " + call.kind,
                 "a function that writes a key of it");
  if (!node.is_mapping())
    file_mistake(node, path, "a mapping of names to what the first step gets",
                 describe(node), "{NAME: 0}");
  for (const auto& [name, value] : node.entries)
    call.carries.push_back(file_carried(name, value, path + "." + name));
}

/// Checks that the renamed writes of a call are names that its code knows.
void check_written_words(const FileCall& call, const YamlNode& node,
                         const std::string& path,
                         const std::vector<std::string>& words) {
  for (const auto& key : call.writes) {
    const auto renamed = std::ranges::find(
      call.renames, key, &std::pair<std::string, std::string>::first);
    const bool has_word = renamed != call.renames.end();
    const auto& word = has_word ? renamed->second : key;
    if (std::ranges::find(words, word) == words.end())
      file_mistake(
        *node.find("writes"), path + ".writes",
        "what " + call.fn + " gives: " + join_or(words), "'" + word + "'",
        has_word || call.kind != "infer" ? nearest_word(word, words)
                                         : "{" + key + ": " + call.fn + "}");
  }
}

/// Fills in reads and writes of infer, over sequences or over both texts of a
/// pair.
void fill_in_inference(FileCall& call, const YamlNode& node,
                       const std::string& path) {
  if (std::ranges::find(inferences, call.fn) == inferences.end())
    file_mistake(*node.find("fn"), path + ".fn", join_or(inferences),
                 "'" + call.fn + "'", nearest_word(call.fn, inferences));
  if (call.reads.empty())
    call.reads = {"sequence_ids"};
  const bool is_top = call.fn == "top_logprobs";
  if ((call.fn == "logprobs" || is_top) && call.reads.size() == 1)
    call.reads.emplace_back("loss_mask");
  if (call.writes.empty())
    call.writes = is_top ? std::vector<std::string>{"top_ids", call.fn}
                         : std::vector<std::string>{call.fn};
  if (is_top)
    return check_written_words(call, node, path, {"top_ids", call.fn});
  std::vector<std::string> words;
  for (const char* prefix : {"", "chosen_", "rejected_"}) {
    words.push_back(prefix + call.fn);
    if (call.fn == "logprobs")
      words.emplace_back(std::string(prefix) + "entropy");
  }
  check_written_words(call, node, path, words);
}

/// Reads the roles that speak in the conversations of a generation.
void read_with(const YamlNode& node, const std::string& path, FileCall& call) {
  if (call.kind != "generate")
    file_mistake(node, path, "it in a call that generates",
                 "it in a call of kind " + call.kind);
  if (!node.is_sequence())
    file_mistake(node, path, "a list of roles", describe(node), "[opponent]");
  for (const auto& item : node.items)
    call.with.push_back(yaml_text(item, path));
}

/// Fills in reads and writes of generate and infer if the file omits them.
void fill_in_call(FileCall& call, const YamlNode& node,
                  const std::string& path) {
  if (call.kind == "generate" && call.fn.empty())
    call.fn = "generate";
  if (call.fn == "generate") {
    if (call.reads.empty())
      call.reads = {"prompt_ids"};
    if (call.writes.empty())
      call.writes = generated_keys();
    check_written_words(call, node, path, all_generated);
  }
  if (call.fn.empty())
    file_mistake(node, path + ".fn",
                 call.kind == "infer" ? join_or(inferences)
                                      : "the name of a loss",
                 "nothing");
  if (call.kind == "infer")
    fill_in_inference(call, node, path);
  if (call.fn == "rewards" && call.reads.empty())
    call.reads = {"sequence_ids", "loss_mask"};
  if (call.fn == "rewards" && call.writes.empty())
    call.writes = {"scores"};
}

/// Returns the call that carries a value of this name; nullptr: none.
const FileCall* carrier_of(const std::vector<FileCall>& calls,
                           const std::string& name) {
  for (const auto& call : calls)
    if (std::ranges::find(call.carries, name, &FileCarried::name)
        != call.carries.end())
      return &call;
  return nullptr;
}

/// Refuses carried values as keys of other calls, which would see it before or
/// after its call, depending on the plan.
void check_carried_keys(const WorkflowFile& workflow, const FileCall& call) {
  auto keys = call.reads;
  keys.insert(keys.end(), call.writes.begin(), call.writes.end());
  for (const auto& key : keys) {
    const auto* by = carrier_of(workflow.calls, key);
    if (by != nullptr)
      throw ConfigError(
        {.place = workflow.places.at("calls." + call.name),
         .path = "calls." + call.name,
         .expected = "keys of samples",
         .got
         = "'" + key + "', which " + by->name + " carries from step to step",
         .hint = by->name == call.name
                   ? "it in carries alone"
                   : "a key that " + by->name + " writes of it"});
  }
}

void check_one_carrier(const std::vector<FileCall>& calls,
                       const FileCall& call) {
  for (const auto& value : call.carries)
    if (const auto* other = carrier_of(calls, value.name); other != &call)
      throw ConfigError(
        {.place = value.place,
         .path = "calls." + call.name + ".carries",
         .expected = "a value that no other call carries",
         .got = value.name + ", which " + other->name + " carries",
         .hint = "a key that " + other->name + " writes of it"});
}

/// Refuses two calls that train a role in one step: there would be two next
/// versions.
void check_one_training(const WorkflowFile& workflow, const FileCall& call) {
  const auto same = [&](const FileCall& other) {
    return other.kind == "train" && other.role == call.role;
  };
  const auto first = std::ranges::find_if(workflow.calls, same);
  if (call.kind == "train" && &*first != &call)
    throw ConfigError({.place = workflow.places.at("calls." + call.name),
                       .path = "calls." + call.name + ".train",
                       .expected = "a role that no other call trains",
                       .got = call.role + ", which " + first->name + " trains",
                       .hint = ""});
}

/// Refuses a Python function of two calls: its name is that of its keys' types.
void check_one_python_call(const WorkflowFile& workflow, const FileCall& call) {
  const auto first = std::ranges::find(workflow.calls, call.fn, &FileCall::fn);
  if (call.python && &*first != &call)
    throw ConfigError({.place = workflow.places.at("calls." + call.name),
                       .path = "calls." + call.name + "." + code_key(call),
                       .expected = "a Python function that no other call has",
                       .got = call.fn + ", which is that of " + first->name,
                       .hint = "another name for it in the file: " + call.name
                               + " = " + python_function(call.fn).name});
}

} // namespace

[[noreturn]] void file_mistake(const YamlNode& node, const std::string& path,
                               const std::string& expected,
                               const std::string& got,
                               const std::string& hint) {
  throw ConfigError({.place = node.place,
                     .path = path,
                     .expected = expected,
                     .got = got,
                     .hint = hint});
}

void check_file_keys(const YamlNode& node, const std::string& path,
                     const std::vector<std::string>& known) {
  if (!node.is_mapping())
    file_mistake(node, path, "a mapping", describe(node));
  for (const auto& [key, value] : node.entries)
    if (std::ranges::find(known, key) == known.end())
      file_mistake(value, path.empty() ? key : path + "." + key, join_or(known),
                   "'" + key + "'", nearest_word(key, known));
}

std::string meant_setting(const std::string& path,
                          bool (*wanted)(const Field&)) {
  std::vector<std::string> known;
  for (const auto& field : settings_fields())
    if (wanted(field))
      known.push_back(field.path);
  return nearest_key(path, known);
}

const std::vector<std::string>& generated_keys() {
  static const std::vector<std::string> keys
    = {"sequence_ids", "loss_mask", "logprobs", "truncated"};
  return keys;
}

FileCall read_file_call(const std::string& name, const YamlNode& node) {
  const auto path = "calls." + name;
  check_file_keys(node, path,
                  {"generate", "infer", "train", "function", "fn", "reads",
                   "writes", "carries", "greedy", "scope", "processes",
                   "outputs", "mean_over", "with"});
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
  if (const YamlNode* writes = node.find("writes");
      writes != nullptr && !is_python_function(call.fn))
    read_file_keys(*writes, path + ".writes", call, call.writes);
  if (const YamlNode* carries = node.find("carries"))
    read_carried(*carries, path + ".carries", call);
  if (const YamlNode* greedy = node.find("greedy"))
    call.greedy = yaml_bool(*greedy, path + ".greedy");
  if (const YamlNode* with = node.find("with"))
    read_with(*with, path + ".with", call);
  read_python_call(node, path, call);
  fill_in_call(call, node, path);
  return call;
}

void check_file_calls(const WorkflowFile& workflow) {
  for (const auto& call : workflow.calls) {
    check_one_python_call(workflow, call);
    check_one_training(workflow, call);
    check_one_carrier(workflow.calls, call);
    check_carried_keys(workflow, call);
  }
}

} // namespace troupe
