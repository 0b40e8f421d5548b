// What all verbs share. A verb is a function that adds its subcommand to the
// command line and, when it is the one that was asked for, leaves what to run
// in `chosen`. CLI11 stays in the sources.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe::runtime {

/// Runs the chosen verb; the result is the exit code.
using VerbRun = std::function<int()>;

struct VerbOptions {
  bool quiet = false;
  bool json = false;
};
/// --quiet
void add_quiet_option(CLI::App& verb, VerbOptions& options);
/// --quiet and --json, of verbs that print a table.
void add_table_options(CLI::App& verb, VerbOptions& options);

/// CONFIG... [key=value ...] as one list of words.
struct ConfigWords {
  std::vector<std::string> words;
  /// Files before overrides; a run folder stands for its config.yaml.
  std::vector<std::string> files() const;
  std::vector<std::string> overrides() const;
};
CLI::Option* add_config_words(CLI::App& verb, ConfigWords& config);

/// ConfigError of `option` unless `file` can be written, or is a pipe or device
/// that can: found out before the work.
void check_out_file(const std::string& file,
                    const std::string& option = "--out");

/// A CLI11 check of options with numbers: its ranges let `nan` pass.
std::string refuse_nan(const std::string& text);

/// Writes `text` to stdout with one newline at its end. FailureError where it
/// cannot be written, as on a full disk; a reader that has left is no failure.
void print_out(const std::string& text);
/// "error: .." to stderr, one line whatever a library put into its text.
void print_error(std::string sentence);
/// Writes `text` to stderr like `print_out`, unless quiet.
void print_note(const VerbOptions& options, const std::string& text);

void add_train(CLI::App& app, VerbRun& chosen);
void add_worker(CLI::App& app, VerbRun& chosen);
void add_plan(CLI::App& app, VerbRun& chosen);
void add_profile(CLI::App& app, VerbRun& chosen);
void add_eval(CLI::App& app, VerbRun& chosen);
void add_generate(CLI::App& app, VerbRun& chosen);
void add_score(CLI::App& app, VerbRun& chosen);
void add_tokenize(CLI::App& app, VerbRun& chosen);
void add_convert(CLI::App& app, VerbRun& chosen);
void add_status(CLI::App& app, VerbRun& chosen);
void add_stop(CLI::App& app, VerbRun& chosen);
void add_logs(CLI::App& app, VerbRun& chosen);
void add_trace(CLI::App& app, VerbRun& chosen);
void add_explain(CLI::App& app, VerbRun& chosen);
void add_doctor(CLI::App& app, VerbRun& chosen);
void add_slurm(CLI::App& app, VerbRun& chosen);
void add_new(CLI::App& app, VerbRun& chosen);

} // namespace troupe::runtime
