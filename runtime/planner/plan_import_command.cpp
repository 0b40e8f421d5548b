// plan import: another system's configuration as ours, with the plan that it
// runs. The YAML goes to stdout, the account of what was read to stderr.
#include "config/base/error.hpp"
#include "plans/cost/cluster_file.hpp"
#include "runtime/planner/import_files.hpp"
#include "runtime/planner/plan_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

struct ImportArguments : CommandOptions {
  ImportWords words;
  std::string hardware = "h100x8";
  bool all = false;
};

const char* fate_word(plans::Fate fate) {
  switch (fate) {
  case plans::Fate::understood:
    return "understood";
  case plans::Fate::irrelevant:
    return "irrelevant";
  case plans::Fate::not_modelled:
    return "not_modelled";
  case plans::Fate::unknown:
    return "unknown";
  }
  return "";
}

std::string import_json(const plans::Recipe& recipe, const std::string& yaml) {
  auto values = Json::array();
  for (const auto& [value, fate, meaning] : recipe.values)
    values.push_back({{"file", value.place.file},
                      {"line", value.place.line},
                      {"key", value.key},
                      {"value", value.value},
                      {"fate", fate_word(fate)},
                      {"meaning", meaning}});
  auto assumed = Json::array();
  for (const auto& one : recipe.assumed)
    assumed.push_back(
      {{"key", one.key}, {"value", one.value}, {"meaning", one.meaning}});
  auto notes = Json::array();
  for (const auto& note : recipe.notes)
    notes.push_back(to_string(note.place) + note.text);
  return Json{{"system", plans::to_string(recipe.system)},
              {"values", std::move(values)},
              {"assumed", std::move(assumed)},
              {"notes", std::move(notes)},
              {"layout", plans::print(recipe.layout)},
              {"settings", yaml}}
    .dump(2, ' ', false, Json::error_handler_t::replace);
}

int import_command(const ImportArguments& arguments) {
  const auto hardware = plans::load_cluster_hardware(arguments.hardware);
  const auto recipe = read_recipe(arguments.words);
  const auto facts = import_facts(recipe, arguments.words, hardware.mem_bytes);
  const auto yaml = plans::print_imported(recipe, facts);
  print_note(arguments, plans::print_account(recipe, arguments.all));
  print_note(arguments, fmt::format("{}: {}", plans::to_string(recipe.system),
                                    plans::print(recipe.layout)));
  if (recipe.layout.engine_share > 0)
    print_note(arguments,
               fmt::format("rollout.kv_cache_gb is {:.0f} % of a {} less the "
                           "engine's weights",
                           100 * recipe.layout.engine_share, hardware.name));
  print_note(arguments,
             fmt::format("next: with this YAML as FILE, simulate FILE "
                         "--hardware {} --published predicts its step",
                         hardware.name));
  print_out(arguments.json ? import_json(recipe, yaml) : yaml);
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_plan_import(CLI::App& plan, CommandRun& chosen) {
  auto arguments = std::make_shared<ImportArguments>();
  auto* command = plan.add_subcommand(
    "import", "Another system's configuration as ours, with the plan that it "
              "runs: YAML on stdout, what was understood on stderr");
  add_import_words(*command, arguments->words)->required();
  command->add_option("--hardware", arguments->hardware,
                      "Devices whose memory the engine has a share of");
  command->add_flag("--all", arguments->all,
                    "List also what changes neither times nor memory");
  add_table_options(*command, *arguments);
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return import_command(*arguments); };
  });
}

} // namespace troupe::runtime
