#include "troupe/app.hpp"

#include "config/base/error.hpp"
#include "config/base/version.hpp"
#include "config/settings/mistakes.hpp"
#include "net/base/open_files.hpp"
#include "plans/plan/plan_names.hpp"
#include "runtime/base/command_line_error.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/launch/startup_signals.hpp"
#include "runtime/run_folder/user_program.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

namespace troupe {

namespace {

using runtime::command_path;
using runtime::CommandRun;
using runtime::commands_of;
using runtime::help_of;

int app_fail(ExitCode code, const std::string& sentence) {
  runtime::print_error(sentence);
  return static_cast<int>(code);
}

/// Prints one line per mistake, and the number of the remaining ones if there
/// are too many to read.
int app_fail(const ConfigErrors& errors) {
  constexpr std::size_t lines_limit = 40;
  const auto& all = errors.all();
  for (std::size_t i = 0; i < std::min(all.size(), lines_limit); ++i)
    runtime::print_error(all[i].what());
  if (all.size() > lines_limit)
    runtime::print_error(
      fmt::format("{} more like these", all.size() - lines_limit));
  return static_cast<int>(ExitCode::wrong_input);
}

void add_commands(CLI::App& app, CommandRun& chosen) {
  for (const auto add :
       {runtime::add_train, runtime::add_plan, runtime::add_profile,
        runtime::add_eval, runtime::add_generate, runtime::add_score,
        runtime::add_tokenize, runtime::add_convert, runtime::add_worker,
        runtime::add_keeper, runtime::add_status, runtime::add_stop,
        runtime::add_logs, runtime::add_trace, runtime::add_explain,
        runtime::add_doctor, runtime::add_slurm, runtime::add_k8s,
        runtime::add_new})
    add(app, chosen);
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
      const auto near = plans::nearest(word, commands);
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

int run_command_line(int argc, char** argv) {
  CLI::App app{"Troupe trains language models with reinforcement learning "
               "from human feedback.\nStart with: troupe train "
               "examples/tiny/ppo.yaml",
               std::filesystem::path(argv[0]).filename().string()};
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  CommandRun chosen;
  add_commands(app, chosen);
  check_commands(app, argc, argv);
  if (argc < 2)
    std::fputs(app.help().c_str(), stdout);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) // --help, --version
      return app.exit(error);
    throw runtime::command_line_error(app, error);
  }
  return chosen();
}

} // namespace

struct App::Parts {
  runtime::UserProgram program;
};

App::App() : parts_(std::make_shared<Parts>()) {}

App& App::add_section(detail::UserSection section) {
  parts_->program.sections.push_back(std::move(section));
  return *this;
}

App& App::add_actor(detail::UserActor actor) {
  parts_->program.actors.push_back(std::move(actor));
  return *this;
}

App& App::add(Workflow workflow) {
  parts_->program.workflows.push_back(workflow.parts());
  return *this;
}

const runtime::UserProgram& App::program() const {
  return parts_->program;
}

int App::main(int argc, char** argv) {
  // sending to a peer that has died must be an error, not end this process
  std::signal(SIGPIPE, SIG_IGN);
  net::raise_open_file_limit();
  runtime::end_cleanly_on_startup_signal(argc, argv);
  try {
    runtime::register_user_program(parts_->program);
    return run_command_line(argc, argv);
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

} // namespace troupe
