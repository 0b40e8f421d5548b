// The master's calls: what is sent for a task, and how its result is handled.
// Chunks of a generation that share a running batch are sent with the first of
// them; a result that arrives before the schedule starts its task waits until
// then.
#pragma once

#include "actors/master/master_work.hpp"

namespace troupe::actors {

/// Starts a call's task that the schedule has released.
void send_call(MasterSelf self, plans::TaskRef task);

} // namespace troupe::actors
