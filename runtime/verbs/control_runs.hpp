// What only a real run shows: what a task costs beside its work, and how much
// longer work takes there than in the profiler's rounds, between processes that
// also talk and with other models in the caches. Runs a few steps of the
// config's workflow, all calls on all devices: data parallel, then with tensor
// parallelism.
#pragma once

#include "runtime/auto_plan.hpp"
#include "runtime/verbs/verb.hpp"

#include <string>

namespace troupe::runtime {

/// Fits call_s, move_s and the table of `profile` to such runs. `problem` is
/// the run with what was measured before; nothing begins that would not end in
/// `left_s`. Says why where there was no run, else nothing.
std::string fit_to_runs(MachineProfile& profile, plans::PlanProblem problem,
                        const ConfigWords& config, double left_s);

} // namespace troupe::runtime
