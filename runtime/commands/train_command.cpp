// train: everything is checked and shown first, then the session runs.
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/settings/settings.hpp"
#include "config/settings/workflow_traits.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/metrics/console.hpp"
#include "runtime/metrics/run_tables.hpp"
#include "runtime/prepare/prepared_run.hpp"
#include "runtime/session/session.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace troupe::runtime {

namespace {

struct TrainOptions : CommandOptions {
  ConfigArguments config;
  bool dry_run = false;
  bool open = false;
};

/// Prints the warnings last, where they are seen when the first step begins.
void show_tables(const PreparedRun& run) {
  print_out(settings_table(run.work.settings));
  print_out("\n" + batch_table(run));
  print_out("\n" + plan_table(run.work));
  if (!run.attempt.resume.sentence.empty())
    print_out(run.attempt.resume.sentence);
  for (const auto& warning : run.work.report.warnings)
    print_out("warning: " + warning);
}

PreparedRun prepare_and_show(const TrainOptions& options) {
  const log::HeldConsole held; // warnings of the data wait for the tables
  const auto settings
    = load_settings(options.config.files(), options.config.overrides());
  auto run = prepare(settings, options.dry_run ? MeasuredNow::is_forgotten
                                               : MeasuredNow::is_kept);
  run.display.quiet = options.quiet || options.json;
  run.display.opens_page = options.open;
  if (options.json)
    print_out(tables_json(run));
  else if (!options.quiet)
    show_tables(run);
  for (const auto& warning : run.work.report.warnings)
    log::plans.warn_file(warning);
  return run;
}

int train(const TrainOptions& options) {
  auto run = prepare_and_show(options);
  if (run.attempt.resume.action == ResumeAction::already_done)
    return static_cast<int>(ExitCode::done);
  if (!options.dry_run)
    return static_cast<int>(run_session(run));
  if (!run.display.quiet)
    print_out(
      fmt::format("dry run: checked settings, models, {} rows, plan and "
                  "run folder; nothing was started or written",
                  run.data.num_rows));
  return static_cast<int>(ExitCode::done);
}

std::string train_sentence() {
  std::string names;
  for (const auto& traits : workflow_table())
    if (!traits.is_command)
      names += (names.empty() ? "" : ", ") + traits.name;
  return "Run a workflow: " + names;
}

} // namespace

void add_train(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand("train", train_sentence());
  auto options = std::make_shared<TrainOptions>();
  add_config_arguments(*command, options->config)->required();
  command->add_flag(
    "--dry-run", options->dry_run,
    "Check everything, print the tables, start and write nothing");
  command->add_flag("--open", options->open,
                    "Show the run's page in a browser");
  add_table_options(*command, *options);
  command->callback(
    [options, &chosen] { chosen = [options] { return train(*options); }; });
}

} // namespace troupe::runtime
