// keeper: keeps a run's snapshots in the memory of this host. Workers start it;
// it is not for users, so `--help` does not list it.
#include "config/base/error.hpp"
#include "net/keeper/keeper.hpp"
#include "runtime/commands/command.hpp"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

namespace troupe::runtime {

namespace {

struct KeeperOptions {
  std::string name;
  std::uint32_t patience_s = 300;
};

/// Tells the worker that waits for the keeper, then lets go of its output.
void say_listening() {
  // a worker that is gone reads nothing
  [[maybe_unused]] const auto said = ::write(STDOUT_FILENO, "r", 1);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0)
    return;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::dup2(nowhere, stream);
  ::close(nowhere);
}

} // namespace

void add_keeper(CLI::App& app, CommandRun& chosen) {
  auto* command
    = app.add_subcommand("keeper", "Keep snapshots in this host's memory");
  command->group(""); // hidden
  auto options = std::make_shared<KeeperOptions>();
  command->add_option("name", options->name, "Name of the run's keepers")
    ->required();
  command->add_option("--patience", options->patience_s,
                      "Seconds without a worker after which it ends");
  command->callback([options, &chosen] {
    chosen = [options] {
      net::run_keeper(options->name, std::chrono::seconds(options->patience_s),
                      say_listening);
      return static_cast<int>(ExitCode::done);
    };
  });
}

} // namespace troupe::runtime
