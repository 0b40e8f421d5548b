// troupe-plan: the plan commands alone, for whoever plans and does not train
// with Troupe. Links neither libtorch nor sockets, and starts in milliseconds.
#include "config/base/version.hpp"
#include "runtime/planner/command_line.hpp"
#include "runtime/planner/plan_options.hpp"

#include <CLI/CLI.hpp>

#include <csignal>

namespace {

int run_planner(int argc, char** argv) {
  using namespace troupe;
  CLI::App app{
    "Plans RLHF training on clusters of GPUs: what a step takes, what "
    "fits, which layout is best.\nStart with: troupe-plan import "
    "YOUR_CONFIG, or troupe-plan advise YOUR_CONFIG --gpus 8",
    "troupe-plan"};
  app.set_version_flag("--version", version_text());
  runtime::CommandRun chosen;
  runtime::add_plan_commands(app, chosen, runtime::planning_host());
  return runtime::run_command_line(app, argc, argv, chosen);
}

} // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN); // a reader that has left is no failure
  return troupe::runtime::with_exit_code(
    [&] { return run_planner(argc, argv); });
}
