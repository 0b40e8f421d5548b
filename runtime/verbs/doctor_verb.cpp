// doctor: is this machine, and this configuration, ready?
#include "config/error.hpp"
#include "config/settings.hpp"
#include "runtime/doctor.hpp"
#include "runtime/session_plan.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace troupe::runtime {

namespace {

struct DoctorOptions : VerbOptions {
  ConfigWords config;
};

/// Everything that `train` would check before it starts.
DoctorCheck check_configuration(const Settings& settings) {
  try {
    const auto session = prepare(settings);
    return {"configuration",
            fmt::format("{} would run: {}, {} steps, plan {}",
                        settings.run.name, session.workflow.name,
                        session.num_steps, session.plan_name)};
  } catch (const ConfigError& error) {
    return {"configuration", error.what(), "change what it names"};
  } catch (const PlanError& error) {
    return {"configuration", error.what(), "change the plan"};
  }
}

int run_doctor(const DoctorOptions& options) {
  std::vector<DoctorCheck> checks;
  if (options.config.words.empty()) {
    checks = examine_machine("runs");
    checks.push_back(examine_moves({}));
  } else {
    const auto settings
      = load_settings(options.config.files(), options.config.overrides());
    checks = examine_machine(settings.run.dir);
    checks.push_back(examine_moves(move_check_plan(settings)));
    checks.push_back(check_configuration(settings));
  }
  print_out(options.json ? doctor_json(checks) : doctor_text(checks));
  return static_cast<int>(all_ok(checks) ? ExitCode::done : ExitCode::failed);
}

} // namespace

void add_doctor(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand(
    "doctor", "Check this machine (and a configuration), say what to fix");
  auto options = std::make_shared<DoctorOptions>();
  add_config_words(*verb, options->config);
  add_table_options(*verb, *options);
  verb->callback([options, &chosen] {
    chosen = [options] { return run_doctor(*options); };
  });
}

} // namespace troupe::runtime
