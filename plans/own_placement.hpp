// Where the instances of own actors are. `devices: workers` of a call: so many
// in each worker process; `devices: host`: so many on each host, dealt to its
// worker processes; nothing said: one in each worker process. A call with
// weights has them in each process that leads conversations. Samples go to the
// instances where their rows are, or else of the same host. Pure.
#pragma once

#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"

#include <string>

namespace troupe::plans {

/// How many of the call's actor are in a worker process.
std::uint32_t instances_on(const Cluster& cluster, const Placement& placement,
                           WorkerId worker);
/// The worker whose instances take the samples that `holder` holds.
WorkerId instances_for(const Cluster& cluster, const Placement& placement,
                       WorkerId holder);

/// "expected ..", empty if own actors may be placed like this.
std::string why_no_instances(const Call& call, const Placement& placement);

} // namespace troupe::plans
