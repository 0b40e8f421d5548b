#include "runtime/planner/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace troupe::runtime {

ProgressLine::ProgressLine(const CommandOptions& options)
  : shows_(!options.quiet && ::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  erase();
}

void ProgressLine::show(std::string_view text) {
  if (!shows_)
    return;
  erase();
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
}

void ProgressLine::erase() {
  if (shows_)
    fmt::print(stderr, "\r\033[K"); // to the line's start, erase to its end
}

} // namespace troupe::runtime
