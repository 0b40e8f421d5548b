// Fits a profile to a few real steps, as arithmetic over values: what a task
// costs beside its work, how much longer work takes between processes that also
// communicate, and what sums of gradients and moves cost there. Each layout
// separates what the others mix: with data parallel training, work and sums are
// one number; a model that trains alone shows its work.
#pragma once

#include "runtime/commands/plan_measure.hpp"
#include "runtime/planning/auto_plan.hpp"

#include <map>

namespace troupe::runtime {

/// Layouts, with every call on all devices unless the name states otherwise.
enum class ControlLayout {
  data_parallel,
  tensor_parallel, ///< in pairs
  trained_apart,   ///< data parallel, each trained model on a device of its own
  sharded,         ///< data parallel, trained models with their parameters (z3)
  on_one_device,   ///< every call on the first device, the others idle
};

/// Returns whether the devices and models of `problem` allow such a layout.
bool is_possible(const plans::PlanProblem& problem, ControlLayout layout);
plans::ExecutionPlan control_plan(const plans::PlanProblem& problem,
                                  ControlLayout layout);

/// Costs of the workflow's steps, by layout.
using ControlRuns = std::map<ControlLayout, PlanCosts>;

/// Fits call_s, call_device_s, move_s, sum_Bps, move_Bps, gather_Bps and the
/// table of `profile` to `runs`; what is fitted to them already is kept.
/// `problem` describes their run; its hardware and profile are not read.
void fit_profile(MachineProfile& profile, plans::PlanProblem problem,
                 const ControlRuns& runs);

} // namespace troupe::runtime
