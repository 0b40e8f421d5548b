#include "runtime/early_stop.hpp"

#include "config/error.hpp"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace troupe::runtime {

namespace {

/// Where there is something to go on with, "stopped" is no failure.
ExitCode early_code = ExitCode::stopped;

extern "C" void troupe_on_early_stop(int number) {
  static constexpr char sentence[]
    = "error: stopped by a signal before anything was started\n";
  [[maybe_unused]] const auto written
    = ::write(STDERR_FILENO, sentence, sizeof sentence - 1);
  ::_exit(
    static_cast<int>(number == SIGINT ? ExitCode::interrupted : early_code));
}

/// Whether a verb runs a session that leaves nothing to go on with.
bool is_passing(const char* verb) {
  for (const char* known : {"generate", "score", "convert", "eval", "doctor"})
    if (std::strcmp(verb, known) == 0)
      return true;
  return false;
}

} // namespace

void end_cleanly_on_early_stop(int argc, char** argv) {
  const char* verb = argc > 1 ? argv[1] : "";
  const bool trains = std::strcmp(verb, "train") == 0;
  if (!trains && !is_passing(verb))
    return;
  early_code = trains ? ExitCode::stopped : ExitCode::failed;
  struct sigaction action {};
  action.sa_handler = troupe_on_early_stop;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
}

} // namespace troupe::runtime
