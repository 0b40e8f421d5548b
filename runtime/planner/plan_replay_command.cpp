// plan replay: a run that was, under another plan.
#include "config/base/error.hpp"
#include "runtime/planner/replay.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

int replay_command(const ReplayArguments& arguments) {
  const auto report = replay(arguments);
  print_out(arguments.json ? replay_json(report) : replay_text(report));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_plan_replay(CLI::App& plan, CommandRun& chosen, const PlanHost& host) {
  auto arguments = std::make_shared<ReplayArguments>();
  arguments->host = host;
  auto* command = plan.add_subcommand(
    "replay", "A run that was, under another plan: its lengths and measured "
              "costs, step by step");
  command->add_option("RUN", arguments->run, "The folder of a run")->required();
  command->add_option("--plan", arguments->other,
                      "A preset, a plan file or auto; without it the best plan "
                      "that is found");
  command
    ->add_option("--nodes", arguments->nodes, "On so many nodes of that kind")
    ->check(CLI::PositiveNumber);
  command
    ->add_option("--lag", arguments->lag,
                 "Generations use weights that are so many steps old")
    ->check(CLI::NonNegativeNumber);
  command->add_option("--hardware", arguments->hardware,
                      "laptop, h100x8, h200x8, a100x8 or a file; the measured "
                      "costs correct it");
  add_table_options(*command, *arguments);
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return replay_command(*arguments); };
  });
}

} // namespace troupe::runtime
