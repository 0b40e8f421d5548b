// Which chunks of a generation share one running batch: those that follow the
// first on every device of the mesh, in the plan's order, and need only the
// previous chunk beyond what the first one needed. So the result depends on the
// plan alone and is known when the first chunk starts; in whatever order inputs
// arrive, each chunk can start when the previous one has ended. The same holds
// for slices of one version, of steps that follow each other. Pure functions.
#pragma once

#include "plans/schedule/schedule.hpp"
#include "plans/workflow/workflow.hpp"

#include <span>
#include <vector>

namespace troupe::plans {

/// Returns `first`, a task of `call` that is about to start, and the chunks or
/// slices that join it. `followers`: the tasks after it (Schedule::followers).
/// Conversations of user-defined actors and calls that do not generate run
/// alone.
std::vector<TaskRef> joined_chunks(const StepGraph& graph, const Call& call,
                                   TaskRef first,
                                   std::span<const TaskRef> followers);

/// Returns the same for a task whose chunks may join.
std::vector<TaskRef> joined_chunks(const StepGraph& graph, TaskRef first,
                                   std::span<const TaskRef> followers);

/// Returns whether chunks of `call` may share a batch at all.
bool may_join(const Call& call);

} // namespace troupe::plans
