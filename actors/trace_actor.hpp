// Keeps what the workers' heartbeats say in the trace: memory, rows in the
// stash, progress and dropped events as counters, one set a worker; and this
// process's own memory. Parent: the heartbeat actor, in the master.
#pragma once

#include "actors/ask.hpp"

#include <map>

namespace troupe::actors {

struct TraceState {
  std::string name = "trace";
  std::map<std::uint32_t, Pong> last; ///< by worker
};

PongListener::behavior_type trace_actor(Self<PongListener, TraceState> self);

} // namespace troupe::actors
