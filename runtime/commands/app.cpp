#include "troupe/app.hpp"

#include "config/base/version.hpp"
#include "net/base/open_files.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/launch/startup_signals.hpp"
#include "runtime/planner/command_line.hpp"
#include "runtime/run_folder/user_program.hpp"

#include <CLI/CLI.hpp>

#include <csignal>
#include <filesystem>
#include <string>

namespace troupe {

namespace {

void add_commands(CLI::App& app, runtime::CommandRun& chosen) {
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

int run_commands(int argc, char** argv) {
  CLI::App app{"Troupe trains language models with reinforcement learning "
               "from human feedback.\nStart with: troupe train "
               "examples/tiny/ppo.yaml",
               std::filesystem::path(argv[0]).filename().string()};
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  runtime::CommandRun chosen;
  add_commands(app, chosen);
  return runtime::run_command_line(app, argc, argv, chosen);
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
  return runtime::with_exit_code([&] {
    runtime::register_user_program(parts_->program);
    return run_commands(argc, argv);
  });
}

} // namespace troupe
