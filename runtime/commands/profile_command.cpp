// profile: measures this machine into a hardware file for the planning
// commands, and into the user's cache for `plan: auto`. Devices are measured by
// runtime/planning/profiler.hpp; what only a real run shows is fitted to a few
// steps of the config's workflow (control_runs.hpp).
#include "config/base/clock.hpp"
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "runtime/base/stream_files.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/commands/control_runs.hpp"
#include "runtime/planning/auto_plan.hpp"
#include "runtime/run_folder/check_workflow_calls.hpp"
#include "runtime/run_folder/session_inputs.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <memory>

namespace troupe::runtime {

namespace {

/// The documented limit is 90 seconds, including the runs of some steps.
constexpr int default_limit_s = 85;
constexpr int shortest_limit_s = 30;
constexpr int longest_limit_s = 3600;
/// Measurements have this share of the time, runs of some steps the rest.
constexpr double measuring_share = 45.0 / default_limit_s;

struct ProfileArguments : CommandOptions {
  ConfigArguments config;
  std::string out;
  int seconds = default_limit_s;
  bool is_quick = false;
};

ProfileEffort effort_of(const ProfileArguments& arguments) {
  if (arguments.is_quick)
    return quick_profile_effort;
  return {.seconds = measuring_share * arguments.seconds,
          .sweeps = 3,
          .least_s = 0.07};
}

/// Fits to short runs what only these show.
void add_runs(const ProfileArguments& arguments, plans::PlanProblem problem,
              double seconds, MachineProfile& profile) {
  const auto why_no_run
    = fit_to_runs(profile, std::move(problem), arguments.config, seconds);
  if (!why_no_run.empty())
    print_note(arguments,
               "what a task costs beside its work is assumed: " + why_no_run);
}

int profile_command(const ProfileArguments& arguments) {
  const Stopwatch watch;
  check_out_file(arguments.out);
  const auto asked
    = load_settings(arguments.config.files(), arguments.config.overrides());
  const auto workflow = known_workflow(asked);
  const auto shapes = read_shapes(asked, workflow);
  const auto cluster = choose_plan(asked, workflow, {}, [](const auto&) {
                         return true;
                       }).plan.cluster;
  const auto settings = with_cluster(asked, cluster);
  auto profile = measure_machine(settings, workflow, shapes, cluster,
                                 effort_of(arguments));
  const double spent_s = watch.seconds();
  if (!arguments.is_quick)
    add_runs(arguments,
             run_problem(settings, workflow, shapes, cluster, profile),
             arguments.seconds - spent_s, profile);
  write_result(arguments.out, print(profile));
  if (!arguments.is_quick)
    cache_profile(profile, settings.cluster.device);
  print_note(arguments,
             fmt::format("{}: {} measurements, {} devices at work at once",
                         arguments.out, profile.table.entries().size(),
                         cluster.devices_per_node));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_profile(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand(
    "profile", "Measure this machine into a hardware file (under 90 s)");
  auto arguments = std::make_shared<ProfileArguments>();
  add_config_arguments(*command, arguments->config)->required();
  command->add_option("--out", arguments->out, "Hardware file to write")
    ->required();
  command
    ->add_option("--seconds", arguments->seconds,
                 "Time limit; large models need more for all sizes")
    ->capture_default_str()
    ->check(CLI::Range(shortest_limit_s, longest_limit_s));
  command->add_flag("--quick", arguments->is_quick,
                    "Measure for some seconds, without runs; FILE only");
  add_quiet_option(*command, *arguments);
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return profile_command(*arguments); };
  });
}

} // namespace troupe::runtime
