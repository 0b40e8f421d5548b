// Measures a plan's cost on this machine: runs the program itself for a few
// steps, in a folder of its own that is removed afterwards, and reads its
// metrics.
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "runtime/planner/command_options.hpp"
#include "runtime/planner/plan_costs.hpp"

namespace troupe::runtime {

MeasuredPlan measure_plan(const ConfigArguments& config,
                          const plans::ExecutionPlan& plan, int steps);

} // namespace troupe::runtime
