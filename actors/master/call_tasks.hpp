// The master's calls: what is sent for a task, and how its result is handled.
// Chunks of a generation that share a running batch are sent with the first of
// them; a result that arrives before the schedule starts its task waits until
// then.
#pragma once

#include "actors/master/master_work.hpp"

namespace troupe::actors {

/// Returns whether the task is of a round that the step does not need.
bool is_needless(MasterSelf self, plans::TaskRef task);
/// Ends such a task: nothing is sent.
void pass_over(MasterSelf self, plans::TaskRef task);

/// Starts a call's task that the schedule has released.
void send_call(MasterSelf self, plans::TaskRef task);

} // namespace troupe::actors
