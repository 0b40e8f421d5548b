#include "runtime/launch/startup_signals.hpp"

#include "config/base/error.hpp"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace troupe::runtime {

namespace {

/// Exit code of an early end; if the command can be resumed, "stopped" is no
/// failure.
ExitCode early_code = ExitCode::stopped;

extern "C" void troupe_on_startup_signal(int number) {
  static constexpr char sentence[]
    = "error: stopped by a signal before anything was started\n";
  [[maybe_unused]] const auto written
    = ::write(STDERR_FILENO, sentence, sizeof sentence - 1);
  ::_exit(
    static_cast<int>(number == SIGINT ? ExitCode::interrupted : early_code));
}

/// Returns whether a command runs a session that leaves nothing to resume.
bool is_passing(const char* command) {
  for (const char* known : {"generate", "score", "convert", "eval", "doctor"})
    if (std::strcmp(command, known) == 0)
      return true;
  return false;
}

} // namespace

void end_cleanly_on_startup_signal(int argc, char** argv) {
  const char* command = argc > 1 ? argv[1] : "";
  const bool trains = std::strcmp(command, "train") == 0;
  if (!trains && !is_passing(command))
    return;
  early_code = trains ? ExitCode::stopped : ExitCode::failed;
  struct sigaction action {};
  action.sa_handler = troupe_on_startup_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN)
    ::sigaction(SIGHUP, &action, nullptr);
}

} // namespace troupe::runtime
