// Participants of a call, chosen from what the workers of a run have set up.
#pragma once

#include "actors/calls/call_actor.hpp"
#include "actors/checkpoint/checkpoint_actor.hpp"
#include "runtime/session/run_basis.hpp"

namespace troupe::runtime {

/// Returns the devices of a replica, by worker.
std::vector<actors::LocalMesh>
local_meshes_of(const plans::Replica& replica,
                const std::vector<actors::SetupDone>& ready);
/// Returns the device that writes each replica.
std::map<ReplicaId, actors::Writer>
writers_of(const plans::Replicas& replicas,
           const std::vector<actors::SetupDone>& ready);
/// Sets the workers that may run `setup.call`, a function; if a user-defined
/// actor is not on each of them, also the worker that takes the samples of
/// each.
void place_function(const RunBasis& basis,
                    const std::vector<actors::SetupDone>& ready,
                    actors::CallSetup& setup);

} // namespace troupe::runtime
