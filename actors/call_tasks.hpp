// The master's calls: what is sent for a task, and what its answer means.
// Chunks of a generation that share a running batch are sent with the first of
// them; an answer that comes before the schedule starts its task waits for
// that.
#pragma once

#include "actors/master_work.hpp"

namespace troupe::actors {

/// The schedule starts a call's task.
void send_call(MasterSelf self, plans::TaskRef task);

} // namespace troupe::actors
