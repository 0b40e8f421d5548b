#include "config/settings/python_functions.hpp"

#include "config/base/did_you_mean.hpp"
#include "config/settings/workflow_calls.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <algorithm>
#include <array>
#include <fstream>
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

/// Returns the name that a line of Python defines; "": none.
std::string defined_by(const std::string& line) {
  static const std::regex definition(
    R"(^(?:def|class)\s+(\w+)|^(\w+)\s*(?::[^=]+)?=[^=])");
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

/// Returns the names that a file defines without indentation; nothing if it has
/// `name`, or may have it from elsewhere.
std::optional<std::vector<std::string>> names_without(std::istream& file,
                                                      const std::string& name) {
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    const auto defined = defined_by(line);
    if (defined == name || may_import(line, name))
      return std::nullopt;
    if (!defined.empty())
      names.push_back(defined);
  }
  return names;
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

void read_python_call(const YamlNode& node, const std::string& path,
                      FileCall& call) {
  const bool is_python = is_python_function(call.fn);
  if (is_python && call.kind != "function")
    file_mistake(*node.find("fn"), path + ".fn", "code that the program has",
                 "'" + call.fn + "', as Python computes functions only",
                 "function: " + call.fn + " in a call of its own");
  for (const char* key : {"scope", "processes"})
    if (const YamlNode* value = node.find(key); value != nullptr && !is_python)
      file_mistake(*value, path + "." + key, "it in a Python function only",
                   "it in a call of " + (call.fn.empty() ? call.kind : call.fn),
                   "function: FILE.py:NAME");
  if (!is_python)
    return;
  const YamlNode* writes = node.find("writes");
  if (writes == nullptr || node.find("reads") == nullptr)
    file_mistake(node, path + (writes == nullptr ? ".writes" : ".reads"),
                 "the keys of a Python function", "nothing",
                 writes == nullptr ? "writes: [KEY]" : "reads: [response]");
  call.python = PythonCall{};
  read_python_writes(*writes, path + ".writes", *call.python);
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

void check_python_function(const FileCall& call, const Place& place) {
  const auto [file, name] = python_function(call.fn);
  std::ifstream opened(file);
  const auto refuse = [&](const std::string& expected, const std::string& got,
                          const std::string& hint) {
    throw ConfigError({.place = place,
                       .path = "calls." + call.name + ".function",
                       .expected = expected,
                       .got = got,
                       .hint = hint});
  };
  if (!opened)
    refuse("a Python file", "'" + file + "', which cannot be read", "");
  if (const auto names = names_without(opened, name))
    refuse("a function of " + file
             + (names->empty() ? "" : " (" + join_or(*names) + ")"),
           "'" + name + "'", nearest_word(name, *names));
}

} // namespace troupe
