// Which planes of a replica leave their device between its calls. A replica
// other than home is refreshed before each use, so unless the plan keeps it, it
// is dropped after its last reader, except where a lag makes it hold a version
// from one step to the next. Planes of roles that the plan offloads are loaded
// from host memory before a call and return there after it.
//
// A kept replica is still refreshed in each step, and a drop takes no time
// (total_order.hpp): a step with a kept replica takes exactly as long, and its
// devices need no less memory. So searches drop what moves refresh, and choose
// only which planes of the other replicas leave.
#pragma once

#include "plans/weights/replicas.hpp"

#include <string_view>

namespace troupe::plans {

/// Returns whether a call of the replica reads an older version.
bool has_lag(const ExecutionPlan& plan, const Replica& replica);

/// Returns whether the replica is one version older than home between two
/// steps: it serves calls that lag. An EMA role's replica never is: it changes
/// in place.
bool is_lagged(const Workflow& workflow, const ExecutionPlan& plan,
               const Replica& replica);

/// Returns whether other calls may run on its devices before its first reader:
/// then weights that a move delivers early would be there while they run.
/// Otherwise the move may happen at any time and need not wait until home's
/// devices and the reader's are idle together.
bool others_come_first(const Workflow& workflow, const ExecutionPlan& plan,
                       const Replica& replica);

/// Returns why it is kept between uses; empty for a replica that is dropped.
std::string_view why_kept(const Workflow& workflow, const ExecutionPlan& plan,
                          const Replica& replica);

/// Throws PlanError where the plan says `keep: false` of a replica that is
/// kept.
void check_drops(const Workflow& workflow, const ExecutionPlan& plan,
                 const Replicas& replicas);

/// Returns whether it is dropped after use: only where a move restores it.
bool is_dropped(const Workflow& workflow, const ExecutionPlan& plan,
                const Replica& replica);

/// Returns the planes that leave the device between the calls of this replica;
/// none for a replica that is dropped.
RoleMemory leaves(const Workflow& workflow, const ExecutionPlan& plan,
                  const Replica& replica);

/// Returns the part of `memory` that `call` uses: only training uses the
/// optimizer.
RoleMemory used_by(const Call& call, RoleMemory memory);

/// Returns whether the planes that leave after `call` differ from their copy in
/// host memory, so that they are written back.
bool is_written_back(const Workflow& workflow, const Replica& replica,
                     const Call& call);

/// Returns whether nothing but generation by this replica's own calls needs the
/// memory of its devices: what it allocates may stay there between these calls,
/// and no task needs more than the plan counts. Its weights may be dropped
/// meanwhile, as they are back in each call; those that are offloaded make room
/// for others.
bool only_generates(const Workflow& workflow, const ExecutionPlan& plan,
                    const Replicas& replicas, const Replica& replica);

/// Returns whether planes are loaded for this call and leave after it.
bool comes_and_goes(const Workflow& workflow, const ExecutionPlan& plan,
                    const Replicas& replicas, const Call& call);

} // namespace troupe::plans
