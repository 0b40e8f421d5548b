// Which planes of a replica leave their device between its calls. A replica
// other than home is refreshed before each use, so what the plan does not keep
// is dropped after its last reader, unless a lag makes it hold a version from
// one step to the next. Planes of roles that the plan offloads come
// back from host memory before a call and return after it.
#pragma once

#include "plans/replicas.hpp"

namespace troupe::plans {

/// Dropped after use: only where a move brings the weights again.
bool is_dropped(const Workflow& workflow, const ExecutionPlan& plan,
                const Replica& replica);

/// What leaves the device between the calls of this replica; nothing of one
/// that is dropped.
RoleMemory leaves(const Workflow& workflow, const ExecutionPlan& plan,
                  const Replica& replica);

/// Of those, what `call` uses: the optimizer serves trainings only.
RoleMemory used_by(const Call& call, RoleMemory memory);

/// Whether planes come for this call and go after it.
bool comes_and_goes(const Workflow& workflow, const ExecutionPlan& plan,
                    const Replicas& replicas, const Call& call);

} // namespace troupe::plans
