// What a few real steps teach a profile, as arithmetic over values: what a task
// costs beside its work, how much longer work takes between processes that also
// talk, and what sums of gradients and moves cost there. Each layout shows what
// the others mix: with data parallel training, work and sums are one number;
// a model that trains alone shows its work.
#pragma once

#include "runtime/auto_plan.hpp"
#include "runtime/verbs/plan_measure.hpp"

#include <map>

namespace troupe::runtime {

/// Every call on all devices, except where a name says otherwise.
enum class ControlLayout {
  data_parallel,
  tensor_parallel, ///< in pairs
  trained_apart,   ///< data parallel, each trained model on a device of its own
  sharded,         ///< data parallel, trained models with their parameters (z3)
  on_one_device,   ///< every call on the first device, the others idle
};

/// Whether the devices and models of `problem` have such a layout.
bool is_possible(const plans::PlanProblem& problem, ControlLayout layout);
plans::ExecutionPlan control_plan(const plans::PlanProblem& problem,
                                  ControlLayout layout);

/// Steps of the workflow, by layout.
using ControlRuns = std::map<ControlLayout, PlanCosts>;

/// Fits call_s, call_device_s, move_s, sum_Bps, move_Bps, gather_Bps and the
/// table of `profile` to `runs`; what is fitted to them already stays.
/// `problem` is their run; its hardware and profile are not read.
void fit_profile(MachineProfile& profile, plans::PlanProblem problem,
                 const ControlRuns& runs);

} // namespace troupe::runtime
