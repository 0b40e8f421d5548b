#include "runtime/planner/command_options.hpp"

#include "config/base/error.hpp"
#include "config/yaml/yaml_tree.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/base/stream_files.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace troupe::runtime {

namespace {

/// Returns whether an argument is key=value, unless a file of that very name
/// exists.
bool is_override(const std::string& word) {
  std::error_code ignored;
  return word.find('=') != std::string::npos
         && !std::filesystem::exists(word, ignored);
}

} // namespace

void add_quiet_option(CLI::App& command, CommandOptions& options) {
  command.add_flag("--quiet", options.quiet, "Print results and errors only");
}

void add_table_options(CLI::App& command, CommandOptions& options) {
  add_quiet_option(command, options);
  command.add_flag("--json", options.json,
                   "Print one JSON document on stdout, all else on stderr");
}

std::vector<std::string> ConfigArguments::files() const {
  std::vector<std::string> files;
  for (const auto& word : arguments) {
    std::error_code ignored;
    if (is_override(word))
      continue;
    files.push_back(std::filesystem::is_directory(word, ignored)
                      ? (std::filesystem::path(word) / "config.yaml").string()
                      : word);
  }
  return files;
}

std::vector<std::string> ConfigArguments::overrides() const {
  std::vector<std::string> overrides;
  for (const auto& word : arguments) {
    std::error_code ignored;
    if (is_override(word))
      overrides.push_back(word);
    else if (std::filesystem::is_directory(word, ignored)) {
      // the run in this folder, wherever it was moved
      const auto folder
        = std::filesystem::absolute(word / std::filesystem::path(""))
            .lexically_normal()
            .parent_path();
      // quoted if it is null or [1]
      overrides.push_back("run.name="
                          + print_yaml_scalar(folder.filename().string()));
      overrides.push_back("run.dir="
                          + print_yaml_scalar(folder.parent_path().string()));
    }
  }
  return overrides;
}

CLI::Option* add_config_arguments(CLI::App& command, ConfigArguments& config) {
  return command
    .add_option(
      "config", config.arguments,
      "Settings files, merged left to right (or a run folder), then key=value")
    ->type_name("CONFIG... [key=value ...]");
}

void check_out_file(const std::string& file, const std::string& option) {
  const std::filesystem::path path(file);
  const auto folder
    = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code ignored;
  if (is_stream(path) && ::access(file.c_str(), W_OK) == 0)
    return;
  // otherwise the result is renamed over `path`
  const bool is_other = std::filesystem::exists(path, ignored)
                        && !std::filesystem::is_regular_file(path, ignored);
  if (is_other || is_stream(path) || ::access(folder.c_str(), W_OK | X_OK) != 0)
    throw ConfigError({.place = {"command line", 0},
                       .path = option,
                       .expected = "a file in a writable folder, or a pipe",
                       .got = "'" + file + "'",
                       .hint = ""});
}

std::string refuse_nan(const std::string& text) {
  double number = 0;
  return read_whole(text, number) && std::isnan(number) ? "not a number" : "";
}

void print_out(const std::string& text) {
  errno = 0;
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!text.ends_with('\n'))
    std::fputc('\n', stdout);
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (failed && errno != EPIPE && errno != EBADF)
    throw FailureError(
      {.code = Errc::io,
       .who = "stdout",
       .what = fmt::format("cannot write: {}", std::strerror(errno)),
       .cause = ""});
}

void print_error(std::string sentence) {
  for (char& letter : sentence)
    if (letter == '\n' || letter == '\r')
      letter = ' ';
  const bool red = shows_colours(STDERR_FILENO);
  fmt::print(stderr, "{}error:{} {}\n", red ? "\033[31m" : "",
             red ? "\033[0m" : "", sentence);
}

void print_note(const CommandOptions& options, const std::string& text) {
  if (options.quiet)
    return;
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (!text.ends_with('\n'))
    std::fputc('\n', stderr);
}

} // namespace troupe::runtime
