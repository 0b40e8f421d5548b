// worker: joins a run from this process. The local launcher runs this command
// too.
#include "config/base/error.hpp"
#include "config/base/host_port.hpp"
#include "runtime/base/listen_ports.hpp"
#include "runtime/base/own_address.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/session/worker.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace troupe::runtime {

namespace {

struct WorkerCommandOptions : CommandOptions {
  std::string join;
  std::string token_file;
  std::optional<std::uint32_t> number;
  std::uint32_t threads = 1;
  std::string bind = "auto";
  std::string ports = "auto";
};

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

} // namespace

void add_worker(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand(
    "worker", "Join a run from another process (train starts its own)");
  auto options = std::make_shared<WorkerCommandOptions>();
  command->add_option("--join", options->join, "Address of the run's master")
    ->type_name("HOST:PORT")
    ->required();
  command
    ->add_option(
      "--token-file", options->token_file,
      "File with the run's token and key (RUN/.token); -: standard input")
    ->required();
  command
    ->add_option("--number", options->number,
                 "Worker number, as launchers give it, which keep its log; "
                 "without it, the next free one")
    ->check(CLI::NonNegativeNumber);
  command
    ->add_option("--threads", options->threads,
                 "Compute threads of each device")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  command
    ->add_option("--bind", options->bind, "Address that this worker listens on")
    ->capture_default_str();
  command
    ->add_option("--ports", options->ports,
                 "Ports that it may listen on: FIRST-LAST, or auto")
    ->capture_default_str();
  add_quiet_option(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options] {
      return static_cast<int>(run_worker(worker_options(*options)));
    };
  });
}

} // namespace troupe::runtime
