// The parts that all commands share: options, CONFIG arguments, what goes to
// stdout and stderr. A command is a function that adds its subcommand to the
// command line and, if the user chose it, stores what to run in `chosen`. CLI11
// stays in the sources.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe::runtime {

/// Runs the chosen command and returns the exit code.
using CommandRun = std::function<int()>;

struct CommandOptions {
  bool quiet = false;
  bool json = false;
};
/// Adds --quiet.
void add_quiet_option(CLI::App& command, CommandOptions& options);
/// Adds --quiet and --json, for commands that print a table.
void add_table_options(CLI::App& command, CommandOptions& options);

/// CONFIG... [key=value ...] as one list of arguments.
struct ConfigArguments {
  std::vector<std::string> arguments;
  /// Returns the files, which come before overrides; a run folder stands for
  /// its config.yaml.
  std::vector<std::string> files() const;
  std::vector<std::string> overrides() const;
};
CLI::Option* add_config_arguments(CLI::App& command, ConfigArguments& config);

/// Throws ConfigError of `option` unless `file` can be written, or is a pipe or
/// device that can: checked before the work begins.
void check_out_file(const std::string& file,
                    const std::string& option = "--out");

/// CLI11 check of numeric options, whose ranges let `nan` pass.
std::string refuse_nan(const std::string& text);

/// Writes `text` to stdout with one newline at its end. Throws FailureError if
/// it cannot be written, as on a full disk; a reader that has left is no
/// failure.
void print_out(const std::string& text);
/// Writes "error: ..." to stderr, as one line whatever a library put into its
/// text.
void print_error(std::string sentence);
/// Writes `text` to stderr like `print_out`, unless quiet.
void print_note(const CommandOptions& options, const std::string& text);

} // namespace troupe::runtime
