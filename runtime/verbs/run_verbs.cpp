// status, stop, logs: what one can ask of a run's folder from outside.
#include "config/error.hpp"
#include "runtime/follow_file.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/run_status.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

namespace troupe::runtime {

namespace {

struct StatusOptions : VerbOptions {
  std::string folder;
};

bool may_be_under_way(const RunStatus& status) {
  return status.state == "starting" || status.state == "running"
         || status.state == "stopping";
}

/// The status as a reader sees it: a killed master leaves `running` behind.
RunStatus seen_status(const RunFolder& folder) {
  auto status = read_status(folder);
  if (may_be_under_way(status) && status.host == host_name()
      && !is_active(folder)) {
    status.state = "lost";
    status.eta_s = -1;
    for (auto& worker : status.workers)
      worker.state = "lost";
  }
  return status;
}

int show_status(const StatusOptions& options) {
  const RunFolder folder(options.folder);
  const auto status = seen_status(folder);
  print_out(options.json ? status_json(status) : status_text(folder, status));
  return 0;
}

struct StopOptions : VerbOptions {
  std::string folder;
  bool wait = false;
};

int stop_run(const StopOptions& options) {
  const RunFolder folder(options.folder);
  const auto status = seen_status(folder);
  if (!may_be_under_way(status)) {
    print_note(options, fmt::format("{} does not run (state: {})",
                                    folder.name(), status.state));
    return 0;
  }
  if (status.host != host_name())
    throw ConfigError({.place = {options.folder, 0},
                       .path = "",
                       .expected = "a run whose master is on this host",
                       .got = "one on " + status.host,
                       .hint = "this command there"});
  if (::kill(static_cast<pid_t>(status.pid), SIGTERM) != 0)
    throw FailureError(
      {.code = Errc::io,
       .who = fmt::format("master (pid {})", status.pid),
       .what = fmt::format("cannot be asked to stop: {}", std::strerror(errno)),
       .cause = ""});
  print_note(options, fmt::format("asked {} (pid {}) to save a checkpoint and "
                                  "exit; `troupe train {}` continues it",
                                  folder.name(), status.pid, options.folder));
  if (options.wait)
    wait_until_idle(folder);
  return 0;
}

struct LogsOptions : VerbOptions {
  std::string folder;
  std::optional<std::uint32_t> worker;
  bool follow = false;
};

int show_logs(const LogsOptions& options) {
  const RunFolder folder(options.folder);
  if (!folder.exists())
    throw ConfigError({.place = {options.folder, 0},
                       .path = "",
                       .expected = "a run folder",
                       .got = "no config.yaml in it",
                       .hint = "runs/NAME, the folder of a run"});
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

void add_status(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand(
    "status", "State, step, time left, workers and last failure of a run");
  auto options = std::make_shared<StatusOptions>();
  verb->add_option("run", options->folder, "Run folder")->required();
  add_table_options(*verb, *options);
  verb->callback([options, &chosen] {
    chosen = [options] { return show_status(*options); };
  });
}

void add_stop(CLI::App& app, VerbRun& chosen) {
  auto* verb
    = app.add_subcommand("stop", "Ask a run to save a checkpoint and exit");
  auto options = std::make_shared<StopOptions>();
  verb->add_option("run", options->folder, "Run folder")->required();
  verb->add_flag("--wait", options->wait, "Return when it has ended");
  add_quiet_option(*verb, *options);
  verb->callback(
    [options, &chosen] { chosen = [options] { return stop_run(*options); }; });
}

void add_logs(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand("logs", "Print the log of a run");
  auto options = std::make_shared<LogsOptions>();
  verb->add_option("run", options->folder, "Run folder")->required();
  verb
    ->add_option("--worker", options->worker,
                 "Number of a worker; without it, the master's log")
    ->check(CLI::NonNegativeNumber);
  verb->add_flag("-f,--follow", options->follow,
                 "Go on until the run ends or Ctrl-C");
  add_quiet_option(*verb, *options);
  verb->callback(
    [options, &chosen] { chosen = [options] { return show_logs(*options); }; });
}

} // namespace troupe::runtime
