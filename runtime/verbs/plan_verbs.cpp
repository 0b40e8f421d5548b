// plan show, plan check: what would run where, and why it could not.
#include "config/error.hpp"
#include "config/settings.hpp"
#include "plans/execution_plan.hpp"
#include "plans/hardware_sources.hpp"
#include "plans/plan_check.hpp"
#include "runtime/run_tables.hpp"
#include "runtime/session_plan.hpp"
#include "runtime/verbs/plan_basis.hpp"
#include "runtime/verbs/plan_words.hpp"
#include "runtime/written_plan.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <functional>
#include <memory>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

/// Plans on other hardware are looked at through the planning problem; without
/// it the plan is the one that a run would have here.
int show_plan(const PlanWords& words) {
  const auto settings = words.settings();
  if (words.hardware.empty() && settings.plan == "auto") {
    const auto session = plan_session(settings);
    print_note(words, "plan " + session.plan_name);
    print_out(plans::print(session.plan));
    return static_cast<int>(ExitCode::done);
  }
  const auto problem = make_problem(settings, words);
  const auto named = plan_or_search(settings, problem, words);
  print_note(words, "plan " + named.name);
  if (settings.plan == "auto")
    print_note(words, plans::basis_of(problem.hardware));
  print_out(plans::print(named.plan));
  return static_cast<int>(ExitCode::done);
}

/// `hardware`: what the plan was checked for; null: this host.
std::string check_json(const plans::PlanReport& report,
                       const plans::Hardware* hardware) {
  Json errors = Json::array();
  for (const auto& error : report.errors)
    errors.push_back({{"path", error.path}, {"message", error.message}});
  Json devices = Json::array();
  for (const auto& device : report.devices)
    devices.push_back({{"device", device.device.value},
                       {"peak_bytes", device.peak_bytes},
                       {"at_task", device.at_task}});
  Json document = {{"ok", report.errors.empty()},
                   {"errors", std::move(errors)},
                   {"warnings", report.warnings},
                   {"devices", std::move(devices)}};
  if (hardware)
    document["basis"] = basis_json(*hardware);
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

/// Mistakes are what was asked for, so they are on stdout, and errors, so they
/// are on stderr. A terminal shows both and gets them once.
void print_mistakes(const PlanWords& words, const plans::PlanReport& report,
                    const plans::MistakePlace& place_of) {
  const bool on_stdout = !words.json && ::isatty(STDOUT_FILENO) != 1;
  for (const auto& mistake : report.errors) {
    const auto line = plans::mistake_line(mistake, place_of);
    print_error(line);
    if (on_stdout)
      print_out("error: " + line);
  }
}

/// `table` is of a plan that can run; nobody asks for it otherwise.
int print_check(const PlanWords& words, const plans::PlanReport& report,
                const plans::MistakePlace& place_of,
                const std::function<std::string()>& table,
                const plans::Hardware* hardware) {
  if (words.json)
    print_out(check_json(report, hardware));
  else
    for (const auto& warning : report.warnings)
      print_out("warning: " + warning);
  print_mistakes(words, report, place_of);
  if (!report.ok())
    return static_cast<int>(plans::has_wrong_name(report)
                              ? ExitCode::wrong_input
                              : ExitCode::plan_cannot_run);
  if (words.json)
    return static_cast<int>(ExitCode::done);
  print_out(table());
  print_out(memory_table(report));
  print_out(hardware
              ? "this plan fits the hardware\n" + plans::basis_of(*hardware)
              : "this plan can run");
  return static_cast<int>(ExitCode::done);
}

int check_chosen_plan(const PlanWords& words, const Settings& settings) {
  if (words.hardware.empty()) {
    const auto session = plan_session(settings);
    return print_check(
      words, session.report, places_of_plan(settings, session.plan_name),
      [&] { return plan_table(session); }, nullptr);
  }
  const auto problem = make_problem(settings, words);
  const auto named = plan_or_search(settings, problem, words);
  return print_check(
    words, plans::check_plan(problem, named.plan),
    places_of_plan(settings, named.name),
    [&] { return plans::print(named.plan); }, &problem.hardware);
}

/// A preset that does not exist for the cluster, or a search that finds
/// nothing, is a reason like others.
int check_plan_verb(const PlanWords& words) {
  try {
    return check_chosen_plan(words, words.settings());
  } catch (const PlanError& error) {
    plans::PlanReport report;
    report.errors.push_back({.path = "plan", .message = error.what()});
    if (words.json)
      print_out(check_json(report, nullptr));
    throw;
  }
}

} // namespace

void add_plan(CLI::App& app, VerbRun& chosen) {
  auto* plan = app.add_subcommand("plan", "Look at execution plans");
  plan->require_subcommand(1);
  auto words = std::make_shared<PlanWords>();

  auto* show
    = plan->add_subcommand("show", "Print the plan as YAML (a plan file)");
  add_plan_words(*show, *words);
  add_problem_words(*show, *words);
  add_quiet_option(*show, *words);
  show->callback(
    [words, &chosen] { chosen = [words] { return show_plan(*words); }; });

  auto* check = plan->add_subcommand(
    "check", "Every reason why it cannot run, or the peak memory");
  add_plan_words(*check, *words);
  add_problem_words(*check, *words);
  add_table_options(*check, *words);
  check->callback(
    [words, &chosen] { chosen = [words] { return check_plan_verb(*words); }; });

  add_plan_simulate(*plan, chosen);
  add_plan_search(*plan, chosen);
  add_plan_compare(*plan, chosen);
}

} // namespace troupe::runtime
