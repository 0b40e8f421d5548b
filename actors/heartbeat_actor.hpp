// Whether the workers live, the one place that knows: asks each of them every
// period, from the moment it has joined to the end of the run, whoever it works
// for. A silent one is suspect, then lost; one whose connection closed is lost.
// What workers say of themselves goes on to listeners (trace actor, master).
// Parent: the session, which ends the workers through it: nobody is asked once
// told to end, so every heartbeat in the trace has its answer. It ends itself
// with the last worker, so that the order to end is not lost with its sender.
#pragma once

#include "actors/ask.hpp"
#include "config/defaults.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace troupe::actors {

/// What the silence of a worker means.
enum class Pulse { steady, suspect, lost };
/// Silence counts in whole heartbeats: an answer takes a moment itself.
Pulse pulse_after(AskTable::Clock::duration silence,
                  AskTable::Clock::duration limit = defaults::dead_after);

struct HeartbeatSetup {
  std::shared_ptr<AskTable> asks;
  /// A worker is silent, or (false) speaks again.
  std::function<void(WorkerId, bool suspect)> on_suspect;
  std::function<void(WorkerId, Failure)> on_lost; ///< once a worker
  /// cluster.silence_s: who is silent for so long is lost.
  AskTable::Clock::duration silence_limit = defaults::dead_after;
};

/// One worker's.
struct Heart {
  std::string name; ///< "worker 1 (pid 4711)"
  NodeActor node;
  AskTable::Clock::time_point heard;
  Pulse pulse = Pulse::steady;
};

struct HeartbeatState {
  std::string name = "heartbeat";
  Asks asks;
  HeartbeatSetup setup;
  std::map<std::uint32_t, Heart> hearts; ///< of workers that are not lost
  std::vector<PongListener> listeners;
  AskTable::Clock::time_point last_tick;
  bool ending = false;
};

HeartbeatActor::behavior_type
heartbeat_actor(Self<HeartbeatActor, HeartbeatState> self,
                HeartbeatSetup setup);

} // namespace troupe::actors
