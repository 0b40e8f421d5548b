// status, stop, logs: access to a run's folder from outside.
#include "config/base/error.hpp"
#include "runtime/base/follow_file.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/page/page_access.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/run_list.hpp"
#include "runtime/run_folder/signal_master.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

namespace troupe::runtime {

namespace {

struct StatusOptions : CommandOptions {
  std::string run;
};

/// Shows one run, or a line for each run in a folder of runs.
int show_status(const StatusOptions& options) {
  const std::filesystem::path named = options.run.empty()
                                        ? default_runs_folder()
                                        : std::filesystem::path(options.run);
  const auto runs = list_runs(named);
  const bool lists
    = !RunFolder(named).exists() && (options.run.empty() || !runs.empty());
  if (lists && options.json)
    print_out(runs_json(runs));
  else if (lists)
    print_out(runs.empty() ? "no runs in " + named.string() : runs_text(runs));
  if (lists)
    return 0;
  const RunFolder folder = find_run(options.run);
  auto status = seen_status(folder);
  status.trace_url = address_with_token(folder, status.trace_url);
  print_out(options.json ? status_json(status) : status_text(folder, status));
  return 0;
}

struct StopOptions : CommandOptions {
  std::string run;
  bool wait = false;
};

int stop_run(const StopOptions& options) {
  const RunFolder folder = find_run(options.run);
  const auto status = seen_status(folder);
  if (!is_under_way(status)) {
    print_note(options, fmt::format("{} does not run (state: {})",
                                    folder.name(), status.state));
    return 0;
  }
  if (status.host != host_name())
    throw ConfigError({.place = {options.run, 0},
                       .path = "",
                       .expected = "a run whose master is on this host",
                       .got = "one on " + status.host,
                       .hint = "this command there"});
  signal_master(folder, status.pid, SIGTERM);
  print_note(options,
             fmt::format("asked {} (pid {}) to save a checkpoint and "
                         "exit; `troupe train {}` continues it",
                         folder.name(), status.pid, folder.root().string()));
  if (options.wait)
    wait_until_idle(folder);
  return 0;
}

struct LogsOptions : CommandOptions {
  std::string run;
  std::optional<std::uint32_t> worker;
  bool follow = false;
};

int show_logs(const LogsOptions& options) {
  const RunFolder folder = find_run(options.run);
  const auto path = options.worker
                      ? folder.worker_log(WorkerId{*options.worker})
                      : folder.log_file();
  FollowFile file(path);
  const auto show = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  show(file.read_new());
  while (options.follow && is_active(folder)) {
    file.wait();
    show(file.read_new());
  }
  show(file.read_new());
  return 0;
}

} // namespace

void add_status(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand(
    "status",
    "State, step, time left, workers and last failure of a run; without one, "
    "all runs");
  auto options = std::make_shared<StatusOptions>();
  command->add_option(
    "run", options->run,
    "Name or folder of a run; without it, or with a folder of "
    "runs, a line for each run");
  add_table_options(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options] { return show_status(*options); };
  });
}

void add_stop(CLI::App& app, CommandRun& chosen) {
  auto* command
    = app.add_subcommand("stop", "Ask a run to save a checkpoint and exit");
  auto options = std::make_shared<StopOptions>();
  command->add_option("run", options->run, "Name or folder of a run")
    ->required();
  command->add_flag("--wait", options->wait, "Return when it has ended");
  add_quiet_option(*command, *options);
  command->callback(
    [options, &chosen] { chosen = [options] { return stop_run(*options); }; });
}

void add_logs(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand("logs", "Print the log of a run");
  auto options = std::make_shared<LogsOptions>();
  command->add_option("run", options->run, "Name or folder of a run")
    ->required();
  command
    ->add_option("--worker", options->worker,
                 "Number of a worker; without it, the master's log")
    ->check(CLI::NonNegativeNumber);
  command->add_flag("-f,--follow", options->follow,
                    "Go on until the run ends or Ctrl-C");
  add_quiet_option(*command, *options);
  command->callback(
    [options, &chosen] { chosen = [options] { return show_logs(*options); }; });
}

} // namespace troupe::runtime
