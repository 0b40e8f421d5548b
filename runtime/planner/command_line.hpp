// Runs a program's command line: parses it, runs the chosen command, and turns
// what it throws into a line on stderr and an exit code. `troupe` and
// `troupe-plan` share it.
#pragma once

#include "runtime/planner/command_options.hpp"

#include <functional>

namespace troupe::runtime {

/// Parses the command line into `app`, whose commands store what to run in
/// `chosen`, and runs that. Throws ConfigError for wrong words, with the
/// nearest command.
int run_command_line(CLI::App& app, int argc, char** argv,
                     const CommandRun& chosen);

/// Returns what `run` returns; for what it throws, prints a line per mistake
/// and returns the exit code that docs/interface.md gives.
int with_exit_code(const std::function<int()>& run);

} // namespace troupe::runtime
