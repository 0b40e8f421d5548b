// What only a real run shows (runtime/verbs/control_fit.hpp says what): runs a
// few steps of the config's workflow in each of its layouts and fits a
// profile to them.
#pragma once

#include "runtime/auto_plan.hpp"
#include "runtime/verbs/verb.hpp"

#include <string>

namespace troupe::runtime {

/// Fits `profile` to such runs. `problem` is the run with what was measured
/// before; nothing begins that would not end in `left_s`. Says why where a run
/// failed or there was none, else nothing.
std::string fit_to_runs(MachineProfile& profile, plans::PlanProblem problem,
                        const ConfigWords& config, double left_s);

} // namespace troupe::runtime
