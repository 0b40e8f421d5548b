// The actors that move weights between replicas: those of a run's steps, and
// those of the doctor's check with the actor that leads them.
#pragma once

#include "actors/calls/move_actor.hpp"
#include "actors/calls/move_check_actor.hpp"
#include "actors/membership/setup_actor.hpp"
#include "runtime/session/run_basis.hpp"

#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace troupe::runtime {

/// Spawns one for each pair of source and target. `ready` is by worker.
std::map<std::pair<ReplicaId, ReplicaId>, actors::MoveActor>
spawn_moves(caf::actor_system& system, const RunBasis& basis,
            const std::vector<actors::SetupDone>& ready);

/// The self-test of moves in place of a master, which waits for `start`.
struct MoveCheckActors {
  actors::MoveCheckActor check;
  std::vector<caf::actor_addr> all;
};
MoveCheckActors
spawn_move_check(caf::actor_system& system, const RunBasis& basis,
                 const std::vector<actors::SetupDone>& ready,
                 std::function<void(const actors::RunEnd&)> on_end);

} // namespace troupe::runtime
