// Which planes of a replica leave their device between its calls. A replica
// other than home is refreshed before each use, so what the plan does not keep
// is dropped after its last reader, unless a lag makes it hold a version from
// one step to the next. Planes of roles that the plan offloads come
// back from host memory before a call and return after it.
//
// A kept replica gets its move in each step all the same, and a drop takes no
// time (total_order.hpp): a step with it takes exactly as long, and its devices
// need no less. So searches drop what moves bring, and choose only what of the
// others leaves.
#pragma once

#include "plans/replicas.hpp"

#include <string_view>

namespace troupe::plans {

/// Whether a call reads it at an older version.
bool has_lag(const ExecutionPlan& plan, const Replica& replica);

/// Whether other calls may run on its devices before its first reader: they
/// would find what a move brings too early. Else it may come at any time, so it
/// need not wait until home's devices are idle beside the reader's.
bool others_come_first(const Workflow& workflow, const ExecutionPlan& plan,
                       const Replica& replica);

/// What keeps it between uses; empty for one that is dropped after use.
std::string_view why_kept(const Workflow& workflow, const ExecutionPlan& plan,
                          const Replica& replica);

/// Throws PlanError where the plan says `keep: false` of one that is kept.
void check_drops(const Workflow& workflow, const ExecutionPlan& plan,
                 const Replicas& replicas);

/// Dropped after use: only where a move brings the weights again.
bool is_dropped(const Workflow& workflow, const ExecutionPlan& plan,
                const Replica& replica);

/// What leaves the device between the calls of this replica; nothing of one
/// that is dropped.
RoleMemory leaves(const Workflow& workflow, const ExecutionPlan& plan,
                  const Replica& replica);

/// Of those, what `call` uses: the optimizer serves trainings only.
RoleMemory used_by(const Call& call, RoleMemory memory);

/// Whether what goes after `call` differs from its copy in host memory, so that
/// it is written there.
bool is_written_back(const Workflow& workflow, const Replica& replica,
                     const Call& call);

/// Whether planes come for this call and go after it.
bool comes_and_goes(const Workflow& workflow, const ExecutionPlan& plan,
                    const Replicas& replicas, const Call& call);

} // namespace troupe::plans
