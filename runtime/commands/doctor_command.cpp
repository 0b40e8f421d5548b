// doctor: checks whether this machine and this configuration are ready.
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/commands/doctor.hpp"
#include "runtime/commands/shared_files_check.hpp"
#include "runtime/prepare/prepared_run.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace troupe::runtime {

namespace {

struct DoctorOptions : CommandOptions {
  ConfigArguments config;
};

/// Checks everything that `train` would check before it starts.
DoctorCheck check_configuration(const Settings& settings) {
  try {
    const auto run = prepare(settings);
    return {"configuration",
            fmt::format("{} would run: {}, {} steps, plan {}",
                        settings.run.name, run.work.workflow.name,
                        run.steps.end, run.work.plan_name)};
  } catch (const ConfigError& error) {
    return {"configuration", error.what(), "change what it names"};
  } catch (const PlanError& error) {
    return {"configuration", error.what(), "change the plan"};
  }
}

bool has_other_hosts(const ClusterSettings& cluster) {
  return cluster.nodes.value_or(1) > 1
         || (cluster.launcher != "auto" && cluster.launcher != "local");
}

int run_doctor(const DoctorOptions& options) {
  std::vector<DoctorCheck> checks;
  if (options.config.arguments.empty()) {
    checks = examine_machine("runs");
    checks.push_back(examine_moves({}));
  } else {
    const auto settings
      = load_settings(options.config.files(), options.config.overrides());
    checks = examine_machine(settings.run.dir);
    checks.push_back(examine_moves(move_check_plan(settings)));
    if (has_other_hosts(settings.cluster))
      checks.push_back(examine_shared_files(settings));
    checks.push_back(check_configuration(settings));
  }
  print_out(options.json ? doctor_json(checks) : doctor_text(checks));
  return static_cast<int>(all_ok(checks) ? ExitCode::done : ExitCode::failed);
}

} // namespace

void add_doctor(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand(
    "doctor", "Check this machine (and a configuration), say what to fix");
  auto options = std::make_shared<DoctorOptions>();
  add_config_arguments(*command, options->config);
  add_table_options(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options] { return run_doctor(*options); };
  });
}

} // namespace troupe::runtime
