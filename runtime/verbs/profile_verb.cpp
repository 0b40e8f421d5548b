// profile: measures this machine into a hardware file for the planning verbs,
// and into the user's cache for `plan: auto`. Devices are measured by
// runtime/profiler.hpp; what only a real run shows is fitted to a few steps of
// the config's workflow (control_runs.hpp).
#include "config/error.hpp"
#include "config/settings.hpp"
#include "runtime/auto_plan.hpp"
#include "runtime/known_calls.hpp"
#include "runtime/session_inputs.hpp"
#include "runtime/stream_files.hpp"
#include "runtime/verbs/control_runs.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <memory>

namespace troupe::runtime {

namespace {

/// The promise is 90 seconds, the run of some steps among them.
constexpr double profile_limit_s = 85;
constexpr ProfileEffort patient_effort
  = {.seconds = 45, .sweeps = 3, .least_s = 0.07};

struct ProfileWords : VerbOptions {
  ConfigWords config;
  std::string out;
};

int profile_verb(const ProfileWords& words) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  check_out_file(words.out);
  const auto settings
    = load_settings(words.config.files(), words.config.overrides());
  const auto workflow = known_workflow(settings);
  const auto shapes = read_shapes(settings, workflow);
  const auto cluster = choose_plan(settings, workflow, {}, [](const auto&) {
                         return true;
                       }).plan.cluster;
  auto profile
    = measure_machine(settings, workflow, shapes, cluster, patient_effort);
  const std::chrono::duration<double> spent = Clock::now() - begin;
  auto problem = run_problem(settings, workflow, shapes, cluster, profile);
  const auto why_no_run = fit_to_runs(profile, std::move(problem), words.config,
                                      profile_limit_s - spent.count());
  if (!why_no_run.empty())
    print_note(words,
               "what a task costs beside its work is assumed: " + why_no_run);
  write_result(words.out, print(profile));
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
  add_config_words(*verb, words->config)->required();
  verb->add_option("--out", words->out, "Hardware file to write")->required();
  add_quiet_option(*verb, *words);
  verb->callback(
    [words, &chosen] { chosen = [words] { return profile_verb(*words); }; });
}

} // namespace troupe::runtime
