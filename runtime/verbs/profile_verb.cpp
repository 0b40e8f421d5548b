// profile: measures this machine into a hardware file for the planning verbs,
// and into the user's cache for `plan: auto`. Devices are measured by
// runtime/profiler.hpp; what a task costs beside its work shows only in a real
// run, so a few steps of the config's workflow are run, data parallel.
#include "config/error.hpp"
#include "config/settings.hpp"
#include "plans/presets.hpp"
#include "plans/simulator.hpp"
#include "plans/workflow.hpp"
#include "runtime/auto_plan.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/session_inputs.hpp"
#include "runtime/verbs/plan_measure.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

namespace troupe::runtime {

namespace {

/// The promise is 90 seconds, the run of some steps among them.
constexpr double profile_limit_s = 85;
constexpr ProfileEffort patient_effort
  = {.seconds = 45, .sweeps = 3, .least_s = 0.07};
constexpr int control_steps = 5;
/// Of a run: one step to warm up, and what starts and ends it.
constexpr double run_overhead_s = 5;

struct ProfileWords : VerbOptions {
  ConfigWords config;
  std::string out;
};

/// Tasks of a step on devices, one after the other where all devices do all.
double tasks_of(const plans::Workflow& workflow) {
  const auto tasks
    = std::ranges::count_if(workflow.calls, [](const auto& call) {
        return call.kind != plans::CallKind::function;
      });
  return static_cast<double>(tasks);
}

/// What a task costs beside its work: the time that devices idle in a data
/// parallel run, where each task follows the one before on the same devices.
/// Says why where there is no such run.
std::string fit_control_costs(MachineProfile& profile,
                              const plans::PlanProblem& problem,
                              const ConfigWords& config, double left_s) {
  const auto plan = plans::fitted_preset("data_parallel", problem);
  const plans::CostModel costs(problem);
  const auto step_s = plans::simulate_step_s(problem, costs, plan);
  const auto run_s = run_overhead_s + (control_steps + 1) * step_s;
  if (run_s > left_s)
    return fmt::format("no run of {} steps, which would take {:.0f} s",
                       control_steps, run_s);
  const auto measured = measure_plan(config, plan, control_steps);
  if (!measured.costs)
    return "the run of some steps failed: " + measured.why;
  const auto idle_s = measured.costs->idle_share * measured.costs->step_s;
  auto& hardware = profile.hardware;
  hardware.call_s = hardware.move_s = idle_s / tasks_of(problem.workflow);
  hardware.sources["host.call_s"] = fmt::format(
    "fitted to the idle {:.1f} % of {} data parallel steps of {:.3g} s",
    100 * measured.costs->idle_share, control_steps, measured.costs->step_s);
  hardware.sources["host.move_s"] = "as call_s: a task beside its bytes";
  return "";
}

int profile_verb(const ProfileWords& words) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  check_out_file(words.out);
  const auto settings
    = load_settings(words.config.files(), words.config.overrides());
  const auto workflow = plans::make_workflow(settings);
  const auto shapes = read_shapes(settings, workflow);
  const auto cluster = choose_plan(settings, workflow, {}, [](const auto&) {
                         return true;
                       }).plan.cluster;
  auto profile
    = measure_machine(settings, workflow, shapes, cluster, patient_effort);
  const std::chrono::duration<double> spent = Clock::now() - begin;
  const auto why_no_run = fit_control_costs(
    profile, run_problem(settings, workflow, shapes, cluster, profile),
    words.config, profile_limit_s - spent.count());
  if (!why_no_run.empty())
    print_note(words,
               "what a task costs beside its work is assumed: " + why_no_run);
  replace_file(words.out, print(profile));
  cache_profile(profile);
  print_note(words,
             fmt::format("{}: {} measurements, {} devices at work at once",
                         words.out, profile.table.entries().size(),
                         cluster.devices_per_node));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_profile(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand(
    "profile", "Measure this machine into a hardware file (under 90 s)");
  auto words = std::make_shared<ProfileWords>();
  add_config_words(*verb, words->config, true);
  verb->add_option("--out", words->out, "Hardware file to write")->required();
  add_verb_options(*verb, *words, false);
  verb->callback(
    [words, &chosen] { chosen = [words] { return profile_verb(*words); }; });
}

} // namespace troupe::runtime
