// The master's tasks that are about weights alone: moves between replicas and
// to servers, and planes that are reloaded, offloaded or dropped. A move to
// where the version is already ends without a message.
#pragma once

#include "actors/master/master_work.hpp"

namespace troupe::actors {

/// Starts a move, or an update of servers, that the schedule has released.
void send_move(MasterSelf self, plans::TaskRef task);
/// Starts a task that changes where a replica's planes are.
void send_residency(MasterSelf self, plans::TaskRef task);

} // namespace troupe::actors
