// plan: the commands of runtime/planner, in a program that trains.
#include "runtime/commands/command.hpp"
#include "runtime/commands/plan_measure.hpp"
#include "runtime/metrics/run_tables.hpp"
#include "runtime/planner/plan_options.hpp"
#include "runtime/planning/device_memory.hpp"
#include "runtime/planning/machine_hardware.hpp"
#include "runtime/planning/resolve_cluster.hpp"
#include "runtime/run_folder/check_workflow_calls.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

RunPlan plan_of_run(const Settings& settings) {
  const auto work = std::make_shared<PlannedWork>(plan_work(settings));
  return {.plan = work->plan,
          .name = work->plan_name,
          .report = work->report,
          .table = [work] { return plan_table(*work); }};
}

/// A host without GPUs can plan for them.
std::string name_of_profiles(const Settings& settings) {
  const bool here
    = settings.cluster.device != "gpu" || !net::find_gpus().names.empty();
  return here ? machine_name(settings) : "profiled without a GPU";
}

} // namespace

void add_plan(CLI::App& app, CommandRun& chosen) {
  auto* plan = app.add_subcommand("plan", "Look at execution plans");
  add_plan_commands(*plan, chosen,
                    {.workflow = known_workflow,
                     .device_kind = device_kind,
                     .device_bytes = device_memory_bytes,
                     .hardware = machine_hardware,
                     .profile_name = name_of_profiles,
                     .run_plan = plan_of_run,
                     .measure = measure_plan});
}

} // namespace troupe::runtime
