// Tracks whether the workers are alive, in one place: pings each of them every
// period, from the moment it has joined to the end of the run, whatever it
// works on. A silent one is suspect, then lost; one whose connection closed is
// lost. What workers report in their replies goes on to listeners (trace actor,
// master).
// Parent: the session, which ends the workers through it: no worker is pinged
// after its order to end, so every heartbeat in the trace has its reply. It
// ends itself with the last worker, so that the order to end is not lost with
// its sender.
#pragma once

#include "actors/protocol/ask.hpp"
#include "config/base/defaults.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace troupe::actors {

/// Interpretation of a worker's silence.
enum class WorkerLiveness { steady, suspect, lost };
/// Returns the liveness after a silence, counted in whole heartbeats, since a
/// reply takes a moment itself.
WorkerLiveness liveness_after(AskTable::Clock::duration silence,
                              AskTable::Clock::duration limit
                              = defaults::dead_after);

struct HeartbeatSetup {
  std::shared_ptr<AskTable> asks;
  /// Called when a worker falls silent, or (false) replies again.
  std::function<void(WorkerId, bool suspect)> on_suspect;
  std::function<void(WorkerId, Failure)> on_lost; ///< once per worker
  /// cluster.silence_s: a worker that is silent for this long is lost.
  AskTable::Clock::duration silence_limit = defaults::dead_after;
};

/// Health of one worker.
struct WorkerHealth {
  std::string name; ///< "worker 1 (pid 4711)"
  NodeActor node;
  AskTable::Clock::time_point heard;
  WorkerLiveness liveness = WorkerLiveness::steady;
};

struct HeartbeatState {
  std::string name = "heartbeat";
  Asks asks;
  HeartbeatSetup setup;
  std::map<std::uint32_t, WorkerHealth> workers; ///< workers that are not lost
  std::vector<HeartbeatListener> listeners;
  AskTable::Clock::time_point last_tick;
  bool ending = false;
};

HeartbeatActor::behavior_type
heartbeat_actor(Self<HeartbeatActor, HeartbeatState> self,
                HeartbeatSetup setup);

} // namespace troupe::actors
