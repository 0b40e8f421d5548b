#include "config/settings/python_functions.hpp"

#include "config/base/did_you_mean.hpp"
#include "config/settings/workflow_calls.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <regex>

namespace troupe {

namespace {

constexpr std::string_view python_suffix = ".py:";
constexpr int most_python_processes = 256;

struct NamedType {
  const char* word;
  KeyType type;
  Per per;
};
/// Words of `writes`; the first is that of a key without one.
constexpr std::array named_types
  = {NamedType{"number", KeyType::f32, Per::sample},
     NamedType{"numbers", KeyType::f32, Per::token},
     NamedType{"integer", KeyType::i32, Per::sample},
     NamedType{"integers", KeyType::i32, Per::token},
     NamedType{"flag", KeyType::u8, Per::sample},
     NamedType{"flags", KeyType::u8, Per::token},
     NamedType{"text", KeyType::text, Per::sample}};

struct KeyTable {
  NamedType holds; ///< without a word
  std::vector<std::string_view> keys;
};

const std::vector<KeyTable>& key_tables() {
  static const std::vector<KeyTable> tables = {
    {{"", KeyType::text, Per::sample},
     {"prompt", "ground_truth", "data_source", "extra_info", "response"}},
    {{"", KeyType::i32, Per::token},
     {"prompt_ids", "sequence_ids", "chosen_ids", "rejected_ids", "top_ids",
      "kept_counts", "kept_ids", "kl_sequence_ids"}},
    {{"", KeyType::u8, Per::token},
     {"loss_mask", "chosen_loss_mask", "rejected_loss_mask", "kl_loss_mask"}},
    {{"", KeyType::u8, Per::sample}, {"truncated"}},
    {{"", KeyType::f32, Per::token},
     {"logprobs", "ref_logprobs", "chosen_logprobs", "rejected_logprobs",
      "kl_logprobs", "kl_ref_logprobs", "top_logprobs", "entropy", "values",
      "advantages", "returns"}},
    {{"", KeyType::f32, Per::sample},
     {"scores", "desirable", "pair_margin", "kl_point"}}};
  return tables;
}

std::vector<std::string> type_words() {
  std::vector<std::string> words;
  for (const auto& type : named_types)
    words.emplace_back(type.word);
  return words;
}

KeyInfo written_key(const std::string& key, const YamlNode* word,
                    const std::string& path) {
  const NamedType* type = named_types.data();
  if (word != nullptr) {
    const auto text = yaml_text(*word, path + "." + key);
    type = std::ranges::find(named_types, text, &NamedType::word);
    if (type == named_types.end())
      file_mistake(*word, path + "." + key,
                   "what it holds: " + join_or(type_words()), "'" + text + "'",
                   nearest_word(text, type_words()));
  }
  return {key, type->type, type->per};
}

/// Reads a list of keys, or a mapping from keys to what they hold.
void read_python_writes(const YamlNode& node, const std::string& path,
                        PythonCall& python) {
  if (node.is_mapping()) {
    for (const auto& [key, word] : node.entries)
      python.writes.push_back(written_key(key, &word, path));
    return;
  }
  if (!node.is_sequence())
    file_mistake(node, path, "a list of keys, or a mapping of keys to types",
                 describe(node));
  for (const auto& item : node.items) {
    const auto key = yaml_text(item, path);
    python.writes.push_back(
      known_key(key).value_or(written_key(key, nullptr, path)));
  }
}

void read_scope(const YamlNode& node, const std::string& path,
                PythonCall& python) {
  const std::vector<std::string> scopes = {"sample", "group", "batch"};
  python.scope = yaml_text(node, path);
  if (std::ranges::find(scopes, python.scope) == scopes.end())
    file_mistake(node, path, join_or(scopes), "'" + python.scope + "'",
                 nearest_word(python.scope, scopes));
}

void read_processes(const YamlNode& node, const std::string& path,
                    PythonCall& python) {
  double number = 0;
  if (!node.is_scalar() || !read_whole(node.text, number) || number < 1
      || number > most_python_processes
      || number != static_cast<double>(static_cast<int>(number)))
    file_mistake(node, path, "a number of processes from 1 to 256",
                 describe(node));
  python.processes = static_cast<int>(number);
}

/// Reads the rest of a function: its scope, and keys that it must have.
void read_function(const YamlNode& node, const std::string& path,
                   FileCall& call) {
  for (const char* key : {"writes", "reads"})
    if (node.find(key) == nullptr)
      file_mistake(
        node, path + "." + key, "the keys of a Python function", "nothing",
        std::string(key) == "writes" ? "writes: [KEY]" : "reads: [response]");
  read_python_writes(*node.find("writes"), path + ".writes", *call.python);
  for (const auto& key : call.python->writes)
    call.writes.push_back(key.name);
  if (const YamlNode* scope = node.find("scope"))
    read_scope(*scope, path + ".scope", *call.python);
  if (const YamlNode* processes = node.find("processes"))
    read_processes(*processes, path + ".processes", *call.python);
  if (!call.carries.empty() && call.python->scope != "batch")
    file_mistake(*node.find("carries"), path + ".carries",
                 "carried values in a function of scope batch",
                 "them in one of scope " + call.python->scope, "scope: batch");
}

/// Reads the model's outputs that a loss gets, all of one head.
void read_outputs(const YamlNode& node, const std::string& path,
                  PythonCall& python) {
  const std::vector<std::string> words
    = {"logprobs", "entropy", "values", "scores"};
  if (!node.is_sequence())
    file_mistake(node, path, "a list of " + join_or(words), describe(node),
                 "[logprobs, entropy]");
  for (const auto& item : node.items) {
    const auto word = yaml_text(item, path);
    if (std::ranges::find(words, word) == words.end())
      file_mistake(item, path, join_or(words), "'" + word + "'",
                   nearest_word(word, words));
    python.outputs.push_back(word);
  }
  const auto is_scalar = [](const std::string& word) {
    return word == "values" || word == "scores";
  };
  const auto of_scalars = std::ranges::count_if(python.outputs, is_scalar);
  if (of_scalars != 0 && of_scalars != std::ssize(python.outputs))
    file_mistake(node, path, "outputs of one head", describe(node),
                 "[logprobs, entropy] or [values, scores]");
}

/// Reads the rest of a loss.
void read_python_loss(const YamlNode& node, const std::string& path,
                      FileCall& call) {
  if (const YamlNode* writes = node.find("writes"))
    file_mistake(*writes, path + ".writes", "no keys written by a loss",
                 describe(*writes), "metrics, which the loss returns");
  if (const YamlNode* outputs = node.find("outputs"))
    read_outputs(*outputs, path + ".outputs", *call.python);
  const YamlNode* mean_over = node.find("mean_over");
  if (mean_over == nullptr)
    return;
  call.python->mean_over = yaml_text(*mean_over, path + ".mean_over");
  std::vector<std::string> words = call.reads;
  for (const auto& [key, word] : call.renames)
    std::ranges::replace(words, key, word);
  for (const char* packed : {"sequence_ids", "loss_mask"})
    std::erase(words, packed); // a mean over tokens needs no word
  if (std::ranges::find(words, call.python->mean_over) == words.end())
    file_mistake(*mean_over, path + ".mean_over", "a key that the loss reads",
                 "'" + call.python->mean_over + "'",
                 nearest_word(call.python->mean_over, words));
}

/// Reads the rest of an actor that leads conversations: what it writes, one
/// value per sample, beside what its generation writes.
void read_leader(const YamlNode& node, const std::string& path,
                 FileCall& call) {
  for (const auto& key : call.reads)
    if (key == "prompt_ids" || key == "response")
      file_mistake(*node.find("reads"), path + ".reads",
                   "what there is before the conversation, beside its prompt",
                   "'" + key + "'",
                   key == "response" ? "sample.response" : "prompt");
  if (const YamlNode* processes = node.find("processes"))
    read_processes(*processes, path + ".processes", *call.python);
  call.writes = generated_keys();
  const YamlNode* writes = node.find("writes");
  if (writes == nullptr)
    return;
  read_python_writes(*writes, path + ".writes", *call.python);
  for (const auto& key : call.python->writes) {
    if (std::ranges::find(call.writes, key.name) != call.writes.end())
      file_mistake(*writes, path + ".writes",
                   "keys that neither the conversation nor this list has yet",
                   "'" + key.name + "'", "leaving it out");
    if (key.per == Per::token)
      file_mistake(*writes, path + ".writes",
                   "keys of one value per sample: number, integer, flag, text",
                   "'" + key.name + "', of values per token", "");
    call.writes.push_back(key.name);
  }
}

/// A key of calls in Python, and their kinds.
struct PythonKey {
  const char* key;
  std::vector<std::string> kinds;
  const char* owner; ///< for messages
};

/// Refuses Python where it computes nothing, and its keys elsewhere.
void check_python_kind(const YamlNode& node, const std::string& path,
                       const FileCall& call) {
  const bool is_python = is_python_function(call.fn);
  if (is_python && call.kind == "infer")
    file_mistake(*node.find("fn"), path + ".fn", "code that the program has",
                 "'" + call.fn
                   + "', as Python computes functions and losses only",
                 "function: " + call.fn + " in a call of its own");
  for (const auto& [key, kinds, owner] :
       {PythonKey{"scope", {"function"}, "function"},
        PythonKey{"processes", {"function", "generate"}, "function"},
        PythonKey{"outputs", {"train"}, "loss"},
        PythonKey{"mean_over", {"train"}, "loss"}})
    if (const YamlNode* value = node.find(key);
        value != nullptr
        && (!is_python || std::ranges::find(kinds, call.kind) == kinds.end())) {
      const bool of_loss = std::string(owner) == "loss";
      file_mistake(*value, path + "." + key,
                   std::string("it in a Python ") + owner + " only",
                   "it in a call of " + (call.fn.empty() ? call.kind : call.fn),
                   of_loss ? "fn: FILE.py:NAME" : "function: FILE.py:NAME");
    }
}

/// Returns the name that a line of Python defines; "": none.
std::string defined_by(const std::string& line) {
  static const std::regex definition(
    R"(^(?:(?:async\s+)?def|class)\s+(\w+)|^(\w+)\s*(?::[^=]+)?=[^=])");
  std::smatch found;
  if (!std::regex_search(line, found, definition))
    return "";
  return found[1].matched ? found[1] : found[2];
}

/// Returns whether a line may bring a name from another file.
bool may_import(const std::string& line, const std::string& name) {
  static const std::regex many(R"(^from\s.*import\s*[(*])");
  return line.starts_with("from ")
         && (std::regex_search(line, many) || line.find(name) != line.npos);
}

/// The names that a file defines without indentation.
struct DefinedNames {
  std::vector<std::string> names = {};
  /// Has the name that is looked for, or may have it from elsewhere.
  bool is_there = false;
  std::string definition = {}; ///< its line, if it is a `def`
};

DefinedNames defined_names(std::istream& file, const std::string& name) {
  static const std::regex function(R"(^(?:async\s+)?def\s)");
  DefinedNames found;
  for (std::string line; std::getline(file, line);) {
    const auto defined = defined_by(line);
    found.is_there |= defined == name || may_import(line, name);
    if (defined == name && std::regex_search(line, function))
      found.definition = line;
    if (!defined.empty())
      found.names.push_back(defined);
  }
  return found;
}

} // namespace

bool is_python_function(std::string_view fn) {
  return fn.find(python_suffix) != fn.npos;
}

PythonFunction python_function(const std::string& fn) {
  const auto colon = fn.rfind(':');
  return {fn.substr(0, colon), fn.substr(colon + 1)};
}

std::optional<KeyInfo> known_key(std::string_view name) {
  for (const auto& table : key_tables())
    if (std::ranges::find(table.keys, name) != table.keys.end())
      return KeyInfo{std::string(name), table.holds.type, table.holds.per};
  return std::nullopt;
}

const char* code_key(const FileCall& call) {
  return call.kind == "function" ? "function" : "fn";
}

void read_python_call(const YamlNode& node, const std::string& path,
                      FileCall& call) {
  check_python_kind(node, path, call);
  if (!is_python_function(call.fn))
    return;
  call.python = PythonCall{};
  if (call.kind == "train")
    read_python_loss(node, path, call);
  else if (call.kind == "generate")
    read_leader(node, path, call);
  else
    read_function(node, path, call);
}

void check_python_function(const FileCall& call, const Place& place) {
  const auto [file, name] = python_function(call.fn);
  std::ifstream opened(file);
  const auto refuse = [&](const std::string& expected, const std::string& got,
                          const std::string& hint) {
    throw ConfigError({.place = place,
                       .path = "calls." + call.name + "." + code_key(call),
                       .expected = expected,
                       .got = got,
                       .hint = hint});
  };
  if (!opened)
    refuse("a Python file", "'" + file + "', which cannot be read", "");
  const auto found = defined_names(opened, name);
  if (!found.is_there)
    refuse("a function of " + file
             + (found.names.empty() ? "" : " (" + join_or(found.names) + ")"),
           "'" + name + "'", nearest_word(name, found.names));
  const bool leads = call.kind == "generate";
  if (!found.definition.empty()
      && found.definition.starts_with("async") != leads)
    refuse(leads ? "an async function, which leads a conversation"
                 : "a function that is not async",
           "'" + name + "'",
           (leads ? "async def " : "def ") + name
             + (leads ? "(model, sample):" : "(...):"));
}

} // namespace troupe
