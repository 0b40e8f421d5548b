// profile: measures this machine into a hardware file for the planning verbs,
// and into the user's cache for `plan: auto`.
#include "config/error.hpp"
#include "config/settings.hpp"
#include "plans/workflow.hpp"
#include "runtime/auto_plan.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/profiler.hpp"
#include "runtime/session_inputs.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace troupe::runtime {

namespace {

/// The promise is 90 seconds; the last measurement begins before this.
constexpr double profile_limit_s = 70;

struct ProfileWords : VerbOptions {
  ConfigWords config;
  std::string out;
};

int profile_verb(const ProfileWords& words) {
  check_out_file(words.out);
  const auto settings
    = load_settings(words.config.files(), words.config.overrides());
  const auto workflow = plans::make_workflow(settings);
  std::map<std::string, ProfiledModel> models;
  for (const auto& [role, shape] : read_shapes(settings, workflow))
    models[role] = {.folder = settings.models.at(role).path,
                    .shape = shape,
                    .trained = workflow.role(role).trained};
  const auto profile = measure_machine(models, profile_limit_s);
  const auto text
    = plans::print(profile.hardware) + plans::print(profile.table);
  replace_file(words.out, text);
  if (const auto cached = cached_hardware_file(); !cached.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(cached.parent_path(), ignored);
    if (std::filesystem::is_directory(cached.parent_path(), ignored))
      replace_file(cached, text);
  }
  print_note(words, fmt::format("{}: {} measurements", words.out,
                                profile.table.entries().size()));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_profile(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand(
    "profile", "Measure this machine into a hardware file (under 90 s)");
  auto words = std::make_shared<ProfileWords>();
  add_config_words(*verb, words->config, true);
  verb->add_option("--out", words->out, "Hardware file to write")->required();
  add_verb_options(*verb, *words, false);
  verb->callback(
    [words, &chosen] { chosen = [words] { return profile_verb(*words); }; });
}

} // namespace troupe::runtime
