// Measures what only a real run shows (listed in
// runtime/commands/control_fit.hpp): runs a few steps of the config's workflow
// in each of its layouts and fits a profile to them.
#pragma once

#include "runtime/commands/command.hpp"
#include "runtime/planning/auto_plan.hpp"

#include <string>

namespace troupe::runtime {

/// Fits `profile` to such runs. `problem` is the run with what was measured
/// before; a run that would not end within `left_s` is not started. Returns the
/// reason if a run failed or there was none, else nothing.
std::string fit_to_runs(MachineProfile& profile, plans::PlanProblem problem,
                        const ConfigArguments& config, double left_s);

} // namespace troupe::runtime
