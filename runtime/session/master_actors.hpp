// The master of a run and the actors that work for it, spawned once all shards
// are loaded. Handles stay with the session (unreferenced CAF actors are
// collected).
#pragma once

#include "actors/master/master_actor.hpp"
#include "actors/membership/setup_actor.hpp"
#include "runtime/session/run_basis.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe::runtime {

/// A master and the actors that work for it.
struct MasterActors {
  actors::MasterActor master;
  /// All of them, including the master: each must get an exit message at the
  /// end, or the actor system would wait for it.
  std::vector<caf::actor_addr> all;
};

/// Events of the master, from handlers of its own.
struct MasterEvents {
  std::function<void(const actors::StepReport&)> on_step;
  std::function<void(const actors::StepReport&)> on_evaluation;
  std::function<void(const actors::RunEnd&)> on_end;
  std::function<void(const std::string&)> on_stall;
};

/// Spawns call, move, data and checkpoint actors around a master, which waits
/// for `start`. `ready` and `nodes` are by worker.
MasterActors spawn_master(caf::actor_system& system, const RunBasis& basis,
                          const std::vector<actors::SetupDone>& ready,
                          const std::vector<actors::NodeActor>& nodes,
                          MasterEvents events);

} // namespace troupe::runtime
