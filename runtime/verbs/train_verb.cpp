// train: everything is checked and shown first, then the session runs.
#include "config/error.hpp"
#include "config/log.hpp"
#include "config/settings.hpp"
#include "config/workflow_traits.hpp"
#include "runtime/metrics/console.hpp"
#include "runtime/run_tables.hpp"
#include "runtime/session.hpp"
#include "runtime/session_plan.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace troupe::runtime {

namespace {

struct TrainOptions : VerbOptions {
  ConfigWords config;
  bool dry_run = false;
  bool open = false;
};

/// The warnings come last, where people look when the first step begins.
void show_tables(const SessionPlan& session) {
  print_out(settings_table(session));
  print_out("\n" + batch_table(session));
  print_out("\n" + plan_table(session));
  if (!session.resume.sentence.empty())
    print_out(session.resume.sentence);
  for (const auto& warning : session.report.warnings)
    print_out("warning: " + warning);
}

SessionPlan prepare_and_show(const TrainOptions& options) {
  const log::HeldConsole held; // warnings of the data wait for the tables
  const auto settings
    = load_settings(options.config.files(), options.config.overrides());
  auto session = prepare(settings, options.dry_run ? MeasuredNow::is_forgotten
                                                   : MeasuredNow::is_kept);
  session.quiet = options.quiet || options.json;
  session.open_page = options.open;
  if (options.json)
    print_out(tables_json(session));
  else if (!options.quiet)
    show_tables(session);
  for (const auto& warning : session.report.warnings)
    log::plans.warn_file(warning);
  return session;
}

int train(const TrainOptions& options) {
  const auto session = prepare_and_show(options);
  if (session.resume.action == ResumeAction::already_done)
    return static_cast<int>(ExitCode::done);
  if (!options.dry_run)
    return static_cast<int>(run_session(session));
  if (!session.quiet)
    print_out(
      fmt::format("dry run: checked settings, models, {} rows, plan and "
                  "run folder; nothing was started or written",
                  session.num_rows));
  return static_cast<int>(ExitCode::done);
}

std::string train_sentence() {
  std::string names;
  for (const auto& traits : workflow_table())
    if (!traits.is_verb)
      names += (names.empty() ? "" : ", ") + traits.name;
  return "Run a workflow: " + names;
}

} // namespace

void add_train(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand("train", train_sentence());
  auto options = std::make_shared<TrainOptions>();
  add_config_words(*verb, options->config)->required();
  verb->add_flag("--dry-run", options->dry_run,
                 "Check everything, print the tables, start and write nothing");
  verb->add_flag("--open", options->open, "Show the run's page in a browser");
  add_table_options(*verb, *options);
  verb->callback(
    [options, &chosen] { chosen = [options] { return train(*options); }; });
}

} // namespace troupe::runtime
