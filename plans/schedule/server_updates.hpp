// Updates of servers (`rollout.engine`) as tasks of a step: a move of the
// weights from the replica that checks a server to that server. It is on the
// call's devices, runs as soon as they are free and have the weights, and
// before the call. A role that never changes needs none: its server gets the
// weights within the first call.
#pragma once

#include "plans/schedule/step_graph.hpp"

namespace troupe::plans {

/// Adds an update before each call that needs one (served_calls.hpp) to a graph
/// whose versions are ordered. It takes over what the call's first task waits
/// for except rows.
void add_server_updates(StepGraph& graph, const Workflow& workflow,
                        const Replicas& replicas);

/// Returns the task for which planes of the replica are loaded before a call
/// whose first task is `first`: that, or the update, which then runs right
/// before the call too.
TaskTemplate& first_on_replica(StepGraph& graph, std::uint32_t first);

} // namespace troupe::plans
