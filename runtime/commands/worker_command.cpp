// worker: joins a run from this process. The local launcher runs this command
// too.
#include "config/base/error.hpp"
#include "config/base/host_port.hpp"
#include "config/base/listen_ports.hpp"
#include "config/base/own_address.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/launch/stop_signals.hpp"
#include "runtime/session/worker.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace troupe::runtime {

namespace {

struct WorkerCommandOptions : CommandOptions {
  std::string join;
  std::string token_file;
  std::optional<std::uint32_t> number;
  std::uint32_t threads = 1;
  std::string bind = "auto";
  std::string ports = "auto";
  bool is_spare = false;
};

void add_worker_options(CLI::App& command, WorkerCommandOptions& options) {
  command.add_option("--join", options.join, "Address of the run's master")
    ->type_name("HOST:PORT REQUIRED");
  command
    .add_option("--token-file", options.token_file,
                "File with the run's token and key (RUN/.token); -: "
                "standard input")
    ->type_name("TEXT REQUIRED");
  command
    .add_option("--number", options.number,
                "Worker number, as launchers give it, which keep its log; "
                "without it, the next free one")
    ->check(CLI::NonNegativeNumber);
  command
    .add_option("--threads", options.threads, "Compute threads of each device")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  command
    .add_option("--bind", options.bind, "Address that this worker listens on")
    ->capture_default_str();
  command
    .add_option("--ports", options.ports,
                "Ports that it may listen on: FIRST-LAST, or auto")
    ->capture_default_str();
}

/// Throws CLI::RequiredError; a spare gets these later.
void check_required(const WorkerCommandOptions& options) {
  if (options.join.empty())
    throw CLI::RequiredError("--join");
  if (options.token_file.empty())
    throw CLI::RequiredError("--token-file");
}

WorkerOptions worker_options(const WorkerCommandOptions& given) {
  const auto address = parse_host_port(given.join);
  if (!address || address->host.empty())
    throw ConfigError({.place = {"command line", 0},
                       .path = "--join",
                       .expected = "HOST:PORT",
                       .got = "'" + given.join + "'",
                       .hint = "the address that `troupe train` logged"});
  return {.host = address->host,
          .port = address->port,
          .token_file = given.token_file,
          .number = given.number,
          .threads = given.threads,
          .listen = listen_ports(
            given.bind == "auto" ? address_towards(address->host) : given.bind,
            given.ports)};
}

/// Waits as a spare until a launcher writes the other options, one word a line
/// up to an empty one; returns false if it does not need this process.
bool wait_for_options(WorkerCommandOptions& options) {
  leave_term_to_master();
  std::vector<std::string> words;
  for (std::string line; std::getline(std::cin, line) && !line.empty();)
    words.push_back(line);
  if (words.empty())
    return false;
  CLI::App app;
  add_worker_options(app, options);
  std::ranges::reverse(words); // as the parser takes them
  app.parse(std::move(words));
  check_required(options);
  return true;
}

int run_worker_command(WorkerCommandOptions& options) {
  if (options.is_spare && !wait_for_options(options))
    return static_cast<int>(ExitCode::done);
  return static_cast<int>(run_worker(worker_options(options)));
}

} // namespace

void add_worker(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand(
    "worker", "Join a run from another process (train starts its own)");
  auto options = std::make_shared<WorkerCommandOptions>();
  add_worker_options(*command, *options);
  command
    ->add_flag("--spare", options->is_spare,
               "Load the program, then read the other options from standard "
               "input")
    ->group(""); // hidden: launchers use it
  add_quiet_option(*command, *options);
  command->callback([options, &chosen] {
    if (!options->is_spare)
      check_required(*options);
    chosen = [options] { return run_worker_command(*options); };
  });
}

} // namespace troupe::runtime
