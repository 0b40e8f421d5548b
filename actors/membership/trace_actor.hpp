// Records what the workers' heartbeats report in the trace: memory, rows in the
// stash, progress and dropped events as counters, one set per worker; and this
// process's own memory. Parent: the heartbeat actor, in the master.
#pragma once

#include "actors/protocol/ask.hpp"

#include <map>

namespace troupe::actors {

struct TraceState {
  std::string name = "trace";
  std::map<std::uint32_t, HeartbeatReply> last; ///< by worker
};

HeartbeatListener::behavior_type
trace_actor(Self<HeartbeatListener, TraceState> self);

} // namespace troupe::actors
