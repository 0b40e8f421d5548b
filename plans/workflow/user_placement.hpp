// Placement of the instances of user-defined actors. `devices: workers` of a
// call: a number in each worker process; `devices: host`: a number on each
// host, spread over its worker processes; nothing given: one in each worker
// process. A call with weights has instances in each process that leads
// conversations. Samples go to the instances where their rows are, or else on
// the same host. Pure functions.
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include <string>

namespace troupe::plans {

/// Returns how many instances of the call's actor are in a worker process.
std::uint32_t instances_on(const Cluster& cluster, const Placement& placement,
                           WorkerId worker);
/// Returns the worker whose instances take the samples that `holder` holds.
WorkerId instances_for(const Cluster& cluster, const Placement& placement,
                       WorkerId holder);

/// Returns "expected ...", or an empty string if user-defined actors may be
/// placed like this.
std::string why_no_instances(const Call& call, const Placement& placement);

} // namespace troupe::plans
