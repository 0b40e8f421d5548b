#include "runtime/planner/import_files.hpp"

#include "config/base/error.hpp"
#include "config/model/known_models.hpp"
#include "plans/foreign/command_flags.hpp"
#include "plans/foreign/yaml_values.hpp"
#include "runtime/base/jsonl_file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

namespace troupe::runtime {

namespace fs = std::filesystem;
using plans::ForeignConfig;

namespace {

bool exists_as_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_yaml_file(const fs::path& path) {
  const auto extension = path.extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

/// Splits KEY=VALUE; nothing for a file of that name.
bool is_import_override(const std::string& word) {
  return word.find('=') != word.npos && !exists_as_file(word);
}

bool is_variable(const std::string& key) {
  return !key.empty() && std::ranges::all_of(key, [](unsigned char letter) {
    return std::isupper(letter) != 0 || std::isdigit(letter) != 0
           || letter == '_';
  });
}

class FileReader {
public:
  explicit FileReader(std::map<std::string, std::string> variables)
    : variables_(std::move(variables)) {}

  ForeignConfig read(const fs::path& file, int depth = 0) {
    const auto text = read_file(file);
    const bool yaml = is_yaml_file(file);
    auto config
      = yaml
          ? plans::yaml_values(
            parse_yaml(text, file.string(), RepeatedKeys::last_one_counts))
          : plans::flags_of(plans::read_shell(text, file.string(), variables_));
    constexpr int deepest = 8; // a file that names itself
    if (depth == deepest)
      return config;
    ForeignConfig base;
    for (const auto& name : base_files(config, yaml))
      append_base(base, file, name, depth);
    base.append(std::move(config));
    return base;
  }

private:
  /// Returns the files that a file builds on: NeMo-RL's `defaults`, the
  /// `--config` of a command.
  static std::vector<std::string> base_files(const ForeignConfig& config,
                                             bool yaml) {
    std::vector<std::string> names;
    const auto add = [&](const char* key) {
      if (const auto* value = config.find(key);
          value && is_yaml_file(value->value))
        names.push_back(value->value);
    };
    if (yaml) {
      add("defaults");
    } else {
      add("config_file");
      add("config");
      add("deepspeed_config");
    }
    return names;
  }

  /// Looks beside the file, in the folders above it and in the current one.
  void append_base(ForeignConfig& base, const fs::path& file,
                   const std::string& name, int depth) {
    for (auto folder = fs::absolute(file).parent_path();;
         folder = folder.parent_path()) {
      const auto candidate = (folder / name).lexically_normal();
      if (exists_as_file(candidate))
        return base.append(read(candidate, depth + 1));
      if (folder == folder.parent_path())
        break;
    }
    if (exists_as_file(name))
      return base.append(read(name, depth + 1));
    base.notes.push_back(
      {{file.string(), 0},
       fmt::format("{} is not there: its values are not read", name)});
  }

  std::map<std::string, std::string> variables_;
};

/// Returns the folder that --model-config gives for a model; empty: none.
std::string folder_for(const std::string& name, const ImportWords& words) {
  std::string any;
  for (const auto& word : words.model_configs) {
    const auto equal = word.find('=');
    if (equal == word.npos)
      any = word;
    else if (word.substr(0, equal) == name)
      return word.substr(equal + 1);
  }
  return any;
}

[[noreturn]] void refuse_model(const std::string& role,
                               const std::string& name) {
  throw ConfigError(
    {.place = {},
     .path = "models." + role + ".path",
     .expected = fmt::format("a model whose shape is known ({} names, such as "
                             "{})",
                             known_models().size(), known_models()[7].name),
     .got = "'" + name + "'",
     .hint = "--model-config FOLDER, with its config.json"});
}

} // namespace

CLI::Option* add_import_words(CLI::App& command, ImportWords& words) {
  command.add_option("--from", words.from,
                     "verl, openrlhf, trl, nemo-rl, areal or deepspeed-chat; "
                     "without it the keys decide");
  command
    .add_option("--model-config", words.model_configs,
                "Folder with the config.json of a model whose shape is not "
                "known; MODEL=FOLDER for one of several")
    ->allow_extra_args(false);
  return command
    .add_option("files", words.words,
                "Files of another system, later ones win, then key=value")
    ->type_name("FILE... [key=value ...]");
}

bool is_ours(const ImportWords& words) {
  std::error_code ignored;
  for (const auto& word : words.words) {
    if (fs::is_directory(word, ignored))
      return true;
    const auto extension = fs::path(word).extension();
    if (words.from.empty() && (extension == ".yaml" || extension == ".yml")
        && fs::is_regular_file(word, ignored))
      return parse_yaml(read_file(word), word, RepeatedKeys::last_one_counts)
               .find("workflow")
             != nullptr;
  }
  return false;
}

ForeignConfig read_foreign(const std::vector<std::string>& words) {
  std::map<std::string, std::string> variables;
  ForeignConfig overrides;
  for (const auto& word : words) {
    if (!is_import_override(word))
      continue;
    auto value = plans::override_of(word, {"command line", 0});
    if (is_variable(value.key))
      variables[value.key] = value.value;
    else
      overrides.values.push_back(std::move(value));
  }
  FileReader reader(variables);
  ForeignConfig config;
  for (const auto& word : words)
    if (!is_import_override(word))
      config.append(reader.read(word));
  config.append(std::move(overrides));
  plans::resolve_references(config);
  return config;
}

plans::Recipe read_recipe(const ImportWords& words) {
  const auto config = read_foreign(words.words);
  return plans::read_recipe(words.from.empty()
                              ? plans::detect_system(config)
                              : plans::parse_system(words.from),
                            config);
}

plans::ImportFacts import_facts(const plans::Recipe& recipe,
                                const ImportWords& words, double device_bytes) {
  plans::ImportFacts facts{.device_bytes = device_bytes};
  for (const auto& [role, name] : recipe.work.models) {
    const auto* known = find_known_model(name);
    std::error_code ignored;
    if (fs::is_regular_file(fs::path(name) / "config.json", ignored)) {
      facts.shapes[name] = read_model_shape(name);
    } else if (const auto folder = folder_for(name, words);
               !folder.empty() && !known) {
      facts.shapes[name] = read_model_shape(folder);
      facts.folders[name] = folder;
    } else if (known) {
      facts.shapes[name] = known->shape;
    } else {
      refuse_model(role, name);
    }
  }
  return facts;
}

} // namespace troupe::runtime
