// The needs of plan commands from the program that they are part of. `troupe`
// trains, so it knows user-defined workflows and this machine's GPUs, can say
// what its own run would do, and can measure. `troupe-plan` does none of this:
// it plans for hardware files, and without one for a computer like this.
#pragma once

#include "config/settings/settings.hpp"
#include "plans/check/plan_check.hpp"
#include "plans/cost/hardware.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"
#include "runtime/planner/command_options.hpp"
#include "runtime/planner/plan_costs.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe::runtime {

/// The plan that a run would have on this machine.
struct RunPlan {
  plans::ExecutionPlan plan;
  std::string name;
  plans::PlanReport report;
  std::function<std::string()> table; ///< of a plan without errors
};

struct PlanHost {
  /// Returns the workflow of the settings; throws ConfigError for names that
  /// the program does not have.
  std::function<plans::Workflow(const Settings&)> workflow;
  /// Returns "cpu" or "gpu": `cluster.device`, or what exists.
  std::function<std::string(const Settings&)> device_kind;
  /// Returns the bytes of each of so many devices of this host; 0: unknown.
  std::function<std::uint64_t(const Settings&, std::uint32_t)> device_bytes;
  /// Returns the shipped numbers for so many devices of this host.
  std::function<plans::Hardware(const Settings&, std::uint32_t)> hardware;
  /// Returns the name of profiles of this host's devices of the kind that
  /// `cluster.device` says; empty: not known.
  std::function<std::string(const Settings&)> profile_name;
  /// Returns the plan that a run would have here; empty: no runs.
  std::function<RunPlan(const Settings&)> run_plan = {};
  /// Runs so many steps of a plan here; empty: no runs.
  std::function<MeasuredPlan(const ConfigArguments&,
                             const plans::ExecutionPlan&, int)>
    measure = {};
};

/// Returns the host of a program that only plans.
PlanHost planning_host();

} // namespace troupe::runtime
