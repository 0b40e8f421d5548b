#include "runtime/planner/command_line.hpp"

#include "config/base/did_you_mean.hpp"
#include "config/base/error.hpp"
#include "config/settings/mistakes.hpp"
#include "runtime/base/command_line_error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

namespace troupe::runtime {

namespace {

int app_fail(ExitCode code, const std::string& sentence) {
  print_error(sentence);
  return static_cast<int>(code);
}

/// Prints one line per mistake, and the number of the remaining ones if there
/// are too many to read.
int app_fail(const ConfigErrors& errors) {
  constexpr std::size_t lines_limit = 40;
  const auto& all = errors.all();
  for (std::size_t i = 0; i < std::min(all.size(), lines_limit); ++i)
    print_error(all[i].what());
  if (all.size() > lines_limit)
    print_error(fmt::format("{} more like these", all.size() - lines_limit));
  return static_cast<int>(ExitCode::wrong_input);
}

/// Names the nearest command for an unknown one: `trian`, `plan chekc`.
void check_commands(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::string word = argv[i];
    const auto commands = commands_of(*at);
    if (commands.empty())
      return;
    if (std::ranges::find(commands, word) == commands.end()) {
      const auto near = nearest_word(word, commands);
      throw ConfigError(
        {.place = {"command line", 0},
         .path = "",
         .expected
         = at == &app ? "a command" : "a command of " + command_path(at),
         .got = "'" + word + "'",
         .hint = near.empty() ? help_of(at) : "'" + near + "'"});
    }
    at = at->get_subcommand(word);
  }
}

} // namespace

int run_command_line(CLI::App& app, int argc, char** argv,
                     const CommandRun& chosen) {
  check_commands(app, argc, argv);
  if (argc < 2)
    std::fputs(app.help().c_str(), stdout);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) // --help, --version
      return app.exit(error);
    throw command_line_error(app, error);
  }
  return chosen();
}

int with_exit_code(const std::function<int()>& run) {
  try {
    return run();
  } catch (const ConfigErrors& errors) {
    return app_fail(errors);
  } catch (const ConfigError& error) {
    return app_fail(ExitCode::wrong_input, error.what());
  } catch (const PlanError& error) {
    return app_fail(ExitCode::plan_cannot_run, error.what());
  } catch (const FailureError& error) {
    const auto code = error.failure().code == Errc::bad_input
                        ? ExitCode::wrong_input
                        : ExitCode::failed;
    return app_fail(code, error.what());
  } catch (const InvariantError& error) {
    return app_fail(
      ExitCode::failed,
      fmt::format("{} (a bug in troupe: please report it)", error.what()));
  } catch (const std::bad_alloc&) {
    return app_fail(ExitCode::failed, "out of memory");
  } catch (const std::exception& error) {
    return app_fail(ExitCode::failed, error.what());
  }
}

} // namespace troupe::runtime
