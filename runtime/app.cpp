#include "troupe/app.hpp"

#include "config/error.hpp"
#include "config/mistakes.hpp"
#include "config/version.hpp"
#include "net/open_files.hpp"
#include "plans/nearest.hpp"
#include "runtime/command_line_error.hpp"
#include "runtime/early_stop.hpp"
#include "runtime/own_program.hpp"
#include "runtime/verbs/verb.hpp"

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

using runtime::help_of;
using runtime::verb_path;
using runtime::VerbRun;
using runtime::verbs_of;

int app_fail(ExitCode code, const std::string& sentence) {
  runtime::print_error(sentence);
  return static_cast<int>(code);
}

/// One line a mistake, and how many more where they are too many to read.
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

void add_verbs(CLI::App& app, VerbRun& chosen) {
  for (const auto add :
       {runtime::add_train, runtime::add_plan, runtime::add_profile,
        runtime::add_eval, runtime::add_generate, runtime::add_score,
        runtime::add_tokenize, runtime::add_convert, runtime::add_worker,
        runtime::add_status, runtime::add_stop, runtime::add_logs,
        runtime::add_trace, runtime::add_explain, runtime::add_doctor,
        runtime::add_slurm, runtime::add_new})
    add(app, chosen);
}

/// An unknown verb gets the nearest one: `trian`, `plan chekc`.
void check_verbs(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::string word = argv[i];
    const auto verbs = verbs_of(*at);
    if (verbs.empty())
      return;
    if (std::ranges::find(verbs, word) == verbs.end()) {
      const auto near = plans::nearest(word, verbs);
      throw ConfigError(
        {.place = {"command line", 0},
         .path = "",
         .expected = at == &app ? "a verb" : "a verb of " + verb_path(at),
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
  VerbRun chosen;
  add_verbs(app, chosen);
  check_verbs(app, argc, argv);
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
  runtime::OwnProgram program;
};

App::App() : parts_(std::make_shared<Parts>()) {}

App& App::add_section(detail::OwnSection section) {
  parts_->program.sections.push_back(std::move(section));
  return *this;
}

App& App::add_actor(detail::OwnActor actor) {
  parts_->program.actors.push_back(std::move(actor));
  return *this;
}

App& App::add(Workflow workflow) {
  parts_->program.workflows.push_back(workflow.parts());
  return *this;
}

const runtime::OwnProgram& App::program() const {
  return parts_->program;
}

int App::main(int argc, char** argv) {
  // a peer that dies while we send must be an error, not our end
  std::signal(SIGPIPE, SIG_IGN);
  net::raise_open_file_limit();
  runtime::end_cleanly_on_early_stop(argc, argv);
  try {
    runtime::register_own_program(parts_->program);
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
