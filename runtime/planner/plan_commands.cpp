// plan show, plan check: what would run where, and why it could not.
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "plans/check/plan_check.hpp"
#include "plans/cost/hardware_sources.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/schedule/slice_versions.hpp"
#include "runtime/planner/memory_table.hpp"
#include "runtime/planner/plan_basis.hpp"
#include "runtime/planner/plan_options.hpp"
#include "runtime/planner/user_plan.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <functional>
#include <memory>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

/// Returns whether the plan is that of a run here, not of other hardware.
bool shows_own_run(const PlanArguments& arguments) {
  return arguments.hardware.empty() && arguments.host.run_plan;
}

/// Shows a plan. One on other hardware comes from the planning problem; without
/// other hardware it is the plan that a run would have here.
int show_plan(const PlanArguments& arguments) {
  const auto settings = arguments.settings();
  if (shows_own_run(arguments) && settings.plan == "auto") {
    const auto run = arguments.host.run_plan(settings);
    print_note(arguments, "plan " + run.name);
    print_out(plans::print(run.plan));
    return static_cast<int>(ExitCode::done);
  }
  const auto problem = make_problem(settings, arguments);
  const auto named = plan_or_search(settings, problem, arguments);
  print_note(arguments, "plan " + named.name);
  if (settings.plan == "auto")
    print_note(arguments, plans::basis_of(problem.hardware));
  print_out(plans::print(named.plan));
  return static_cast<int>(ExitCode::done);
}

/// Returns the memory of sampling masks under a plan that can run.
plans::MaskBytes masks_of(const Settings& settings,
                          const plans::Workflow& workflow,
                          const plans::ExecutionPlan& plan) {
  if (!settings.algorithm.loss.sampling_mask)
    return {};
  const auto sizes = plans::make_check_context(settings, workflow, plan).sizes;
  return plans::mask_bytes(workflow, plan, sizes, settings.rollout.top_k);
}

/// A plan, and what the check found.
struct CheckedPlan {
  plans::PlanReport report;
  plans::MaskBytes masks = {};
  const plans::ClusterHardware* hardware = nullptr; ///< null: this host
};

std::string check_json(const CheckedPlan& checked) {
  const auto& [report, masks, hardware] = checked;
  Json errors = Json::array();
  for (const auto& error : report.errors)
    errors.push_back({{"path", error.path}, {"message", error.message}});
  Json devices = Json::array();
  for (const auto& device : report.devices) {
    devices.push_back({{"device", device.device.value},
                       {"peak_bytes", device.peak_bytes},
                       {"at_task", device.at_task}});
    if (!device.kind.empty())
      devices.back()["kind"] = device.kind;
  }
  Json document = {{"ok", report.errors.empty()},
                   {"errors", std::move(errors)},
                   {"warnings", report.warnings},
                   {"devices", std::move(devices)},
                   {"snapshot_bytes", report.snapshots.with_copies},
                   {"mask_bytes", masks.all()},
                   {"server_bytes", report.servers.of_model()},
                   {"server_cache_bytes", report.servers.caches},
                   {"server_device_bytes", report.servers.on_device},
                   {"offloaded_bytes", report.offloaded_bytes}};
  if (hardware)
    document["basis"] = basis_json(*hardware);
  return document.dump(2, ' ', /*ensure_ascii=*/false,
                       Json::error_handler_t::replace);
}

/// Prints mistakes on stdout, since they are the requested output, and on
/// stderr, since they are errors. A terminal shows both and gets them once.
void print_mistakes(const PlanArguments& arguments,
                    const plans::PlanReport& report,
                    const plans::MistakePlace& place_of) {
  const bool on_stdout = !arguments.json && ::isatty(STDOUT_FILENO) != 1;
  for (const auto& mistake : report.errors) {
    const auto line = plans::mistake_line(mistake, place_of);
    print_error(line);
    if (on_stdout)
      print_out("error: " + line);
  }
}

/// `table` is called only for a plan that can run.
int print_check(const PlanArguments& arguments, const CheckedPlan& checked,
                const plans::MistakePlace& place_of,
                const std::function<std::string()>& table) {
  const auto& report = checked.report;
  if (arguments.json)
    print_out(check_json(checked));
  else
    for (const auto& warning : report.warnings)
      print_out("warning: " + warning);
  print_mistakes(arguments, report, place_of);
  if (!report.ok())
    return static_cast<int>(plans::has_wrong_name(report)
                              ? ExitCode::wrong_input
                              : ExitCode::plan_cannot_run);
  if (arguments.json)
    return static_cast<int>(ExitCode::done);
  print_out(table());
  print_out(memory_table(report) + masks_text(checked.masks));
  print_out(checked.hardware ? "this plan fits the hardware\n"
                                 + plans::basis_of(*checked.hardware)
                             : "this plan can run");
  return static_cast<int>(ExitCode::done);
}

int check_chosen_plan(const PlanArguments& arguments,
                      const Settings& settings) {
  if (shows_own_run(arguments)) {
    const auto run = arguments.host.run_plan(settings);
    CheckedPlan checked{.report = run.report};
    if (checked.report.ok())
      checked.masks
        = masks_of(settings, arguments.host.workflow(settings), run.plan);
    return print_check(arguments, checked, places_of_plan(settings, run.name),
                       run.table);
  }
  const auto problem = make_problem(settings, arguments);
  const auto named = plan_or_search(settings, problem, arguments);
  CheckedPlan checked{.report = plans::check_plan(problem, named.plan),
                      .hardware = &problem.hardware};
  if (checked.report.ok())
    checked.masks = masks_of(settings, problem.workflow, named.plan);
  return print_check(
    arguments, checked, places_of_plan(settings, named.name), [&] {
      return plans::print(named.plan)
             + plans::slices_text(named.plan, problem.sizes.max_new_tokens);
    });
}

/// Runs `plan check`; a preset that does not exist for the cluster, or a search
/// without a result, is reported like other reasons.
int check_plan_command(const PlanArguments& arguments) {
  try {
    return check_chosen_plan(arguments, arguments.settings());
  } catch (const PlanError& error) {
    plans::PlanReport report;
    report.errors.push_back({.path = "plan", .message = error.what()});
    if (arguments.json)
      print_out(check_json({.report = report}));
    throw;
  }
}

} // namespace

void add_plan_commands(CLI::App& plan, CommandRun& chosen,
                       const PlanHost& host) {
  plan.require_subcommand(1);
  auto arguments = std::make_shared<PlanArguments>();
  arguments->host = host;

  auto* show
    = plan.add_subcommand("show", "Print the plan as YAML (a plan file)");
  add_plan_arguments(*show, *arguments);
  add_problem_arguments(*show, *arguments);
  add_quiet_option(*show, *arguments);
  show->callback([arguments, &chosen] {
    chosen = [arguments] { return show_plan(*arguments); };
  });

  auto* check = plan.add_subcommand(
    "check", "Every reason why it cannot run, or the peak memory");
  add_plan_arguments(*check, *arguments);
  add_problem_arguments(*check, *arguments);
  add_table_options(*check, *arguments);
  check->callback([arguments, &chosen] {
    chosen = [arguments] { return check_plan_command(*arguments); };
  });

  add_plan_simulate(plan, chosen, host);
  add_plan_search(plan, chosen, host);
  add_plan_compare(plan, chosen, host);
  add_plan_import(plan, chosen);
  add_plan_advise(plan, chosen, host);
  add_plan_replay(plan, chosen, host);
}

} // namespace troupe::runtime
