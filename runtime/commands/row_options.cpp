#include "runtime/commands/row_options.hpp"

#include "config/base/error.hpp"
#include "config/yaml/overrides.hpp"
#include "models/data/dataset.hpp"

#include <CLI/CLI.hpp>

namespace troupe::runtime {

namespace {

[[noreturn]] void bad_fields(const std::string& got) {
  throw ConfigError({.place = {"command line", 0},
                     .path = "--fields",
                     .expected = "NAME=COLUMN or {NAME: COLUMN, ...}",
                     .got = got,
                     .hint = "--fields prompt=question"});
}

/// Parses the arguments as overrides of data.fields, whose syntax they share.
YamlNode field_tree(const std::vector<std::string>& arguments) {
  std::vector<std::string> overrides;
  for (const auto& word : arguments) {
    if (!word.starts_with('{') && word.find('=') == std::string::npos)
      bad_fields("'" + word + "'");
    overrides.push_back((word.starts_with('{') ? "fields=" : "fields.") + word);
  }
  return parse_overrides(overrides);
}

} // namespace

void add_row_options(CLI::App& command, RowOptions& options) {
  command
    .add_option(
      "--fields", options.fields,
      "Columns, or templates over columns, in place of the names "
      "that rows have here: prompt=question, or '{prompt: \"{question} "
      "Think first.\"}'; may be given again")
    ->type_name("NAME=COLUMN")
    ->expected(1)
    ->take_all();
  command
    .add_option("--chat", options.chat,
                "Whether the chat template renders rows: messages only (auto, "
                "without the option), string prompts too (true), or nothing "
                "(false)")
    ->check(CLI::IsMember({"auto", "true", "false"}))
    ->expected(0, 1)
    ->default_str("true"); // for the option without a value
}

Settings row_settings(const std::string& command, const std::string& file,
                      const RowOptions& options) {
  Settings settings;
  settings.workflow = command;
  settings.data.train = file;
  settings.data.max_prompt_tokens = settings.data.max_tokens = 0;
  settings.data.chat = options.chat;
  const auto tree = field_tree(options.fields);
  const YamlNode* fields = tree.find("fields");
  if (fields == nullptr)
    return settings;
  if (!fields->is_mapping())
    bad_fields(describe(*fields));
  for (const auto& [name, column] : fields->entries) {
    if (!column.is_scalar())
      bad_fields(name + ": " + describe(column));
    settings.data.fields[name] = column.text;
    settings.places["data.fields." + name] = column.place;
  }
  return settings;
}

models::DatasetOptions row_dataset_options(const Settings& settings) {
  auto options = models::train_options(settings);
  options.fields_word = "--fields ";
  return options;
}

} // namespace troupe::runtime
