// Which chunks of a generation share one running batch: those that follow the
// first on every device of the mesh, in the plan's order, and need nothing but
// the chunk before them that the first did not need. So the answer is the
// plan's and known when the first one starts; whatever arrives when, each of
// them can start when the one before it has ended. Pure.
#pragma once

#include "plans/schedule.hpp"
#include "plans/workflow.hpp"

#include <span>
#include <vector>

namespace troupe::plans {

/// `first`, a task of `call` that is about to start, and the chunks that join
/// it. `followers`: what comes behind it (Schedule::followers). Own actors'
/// conversations run alone, and so does what does not generate.
std::vector<TaskRef> joined_chunks(const StepGraph& graph, const Call& call,
                                   TaskRef first,
                                   std::span<const TaskRef> followers);

/// The same of a task whose chunks may join.
std::vector<TaskRef> joined_chunks(const StepGraph& graph, TaskRef first,
                                   std::span<const TaskRef> followers);

/// Whether chunks of `call` may share a batch at all.
bool may_join(const Call& call);

} // namespace troupe::plans
