// plan show, plan check: what would run where, and why it could not.
#include "config/error.hpp"
#include "config/settings.hpp"
#include "plans/execution_plan.hpp"
#include "plans/plan_check.hpp"
#include "runtime/run_tables.hpp"
#include "runtime/session_plan.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

struct PlanOptions : VerbOptions {
  ConfigWords config;
  std::string preset;
  std::string plan_file;
};

/// --preset and --plan are other words for `plan=...`.
Settings plan_settings(const PlanOptions& options) {
  if (!options.preset.empty() && !options.plan_file.empty())
    throw ConfigError({"command line", 0},
                      "--preset and --plan exclude each other");
  auto overrides = options.config.overrides();
  if (!options.preset.empty())
    overrides.push_back("plan=" + options.preset);
  if (!options.plan_file.empty())
    overrides.push_back("plan=" + options.plan_file);
  return load_settings(options.config.files(), overrides);
}

int show_plan(const PlanOptions& options) {
  const auto session = plan_session(plan_settings(options));
  print_note(options, "plan " + session.plan_name);
  print_out(plans::print(session.plan));
  return static_cast<int>(ExitCode::done);
}

std::string check_json(const plans::PlanReport& report) {
  using Json = nlohmann::ordered_json;
  Json errors = Json::array();
  for (const auto& error : report.errors)
    errors.push_back({{"path", error.path}, {"message", error.message}});
  Json devices = Json::array();
  for (const auto& device : report.devices)
    devices.push_back({{"device", device.device.value},
                       {"peak_bytes", device.peak_bytes},
                       {"at_task", device.at_task}});
  return Json{{"ok", report.errors.empty()},
              {"errors", std::move(errors)},
              {"warnings", report.warnings},
              {"devices", std::move(devices)}}
    .dump(2, ' ', false, Json::error_handler_t::replace);
}

int check_plan_verb(const PlanOptions& options) {
  const auto session = plan_session(plan_settings(options));
  const auto& report = session.report;
  const int code = static_cast<int>(
    report.errors.empty() ? ExitCode::done : ExitCode::plan_cannot_run);
  if (options.json) {
    print_out(check_json(report));
    return code;
  }
  for (const auto& error : report.errors)
    print_out(fmt::format("error: {}: {}", error.path, error.message));
  for (const auto& warning : report.warnings)
    print_out("warning: " + warning);
  if (!report.errors.empty())
    return code;
  print_out(plan_table(session));
  print_out(memory_table(report));
  print_out("this plan can run");
  return code;
}

void add_plan_options(CLI::App& verb, PlanOptions& options) {
  add_config_words(verb, options.config, true);
  verb.add_option("--preset", options.preset, "A preset in place of `plan`");
  verb.add_option("--plan", options.plan_file,
                  "A plan file in place of `plan`");
}

void add_later(CLI::App& plan, const char* name, VerbRun& chosen) {
  auto* verb = plan.add_subcommand(name, "(comes with a later version)");
  verb->allow_extras();
  verb->callback([name, &chosen] {
    chosen = [name]() -> int {
      throw ConfigError(
        {"command line", 0},
        fmt::format("`troupe plan {}` comes with a later version; try `troupe "
                    "plan check`, or `troupe train` with run.steps=3",
                    name));
    };
  });
}

} // namespace

void add_plan(CLI::App& app, VerbRun& chosen) {
  auto* plan = app.add_subcommand("plan", "Look at execution plans");
  plan->require_subcommand(1);
  auto options = std::make_shared<PlanOptions>();

  auto* show
    = plan->add_subcommand("show", "Print the plan as YAML (a plan file)");
  add_plan_options(*show, *options);
  add_verb_options(*show, *options, false);
  show->callback(
    [options, &chosen] { chosen = [options] { return show_plan(*options); }; });

  auto* check = plan->add_subcommand(
    "check", "Every reason why it cannot run, or the peak memory");
  add_plan_options(*check, *options);
  add_verb_options(*check, *options, true);
  check->callback([options, &chosen] {
    chosen = [options] { return check_plan_verb(*options); };
  });

  for (const char* name : {"simulate", "search", "compare"})
    add_later(*plan, name, chosen);
}

} // namespace troupe::runtime
