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

bool is_one_of(const char* word, const char* a, const char* b, const char* c) {
  return std::strcmp(word, a) == 0 || std::strcmp(word, b) == 0
         || std::strcmp(word, c) == 0;
}

} // namespace

void end_cleanly_on_early_stop(int argc, char** argv) {
  const char* verb = argc > 1 ? argv[1] : "";
  const bool trains = std::strcmp(verb, "train") == 0;
  if (!trains && !is_one_of(verb, "generate", "score", "convert"))
    return;
  early_code = trains ? ExitCode::stopped : ExitCode::failed;
  struct sigaction action {};
  action.sa_handler = troupe_on_early_stop;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
}

} // namespace troupe::runtime
