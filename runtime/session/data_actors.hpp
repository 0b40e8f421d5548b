// The actors that provide rows: those of training in their order, and those of
// an evaluation, all of them each time.
#pragma once

#include "actors/calls/data_actor.hpp"
#include "runtime/session/run_basis.hpp"

namespace troupe::runtime {

/// Spawns none if the workflow reads no data set.
actors::DataActor spawn_data(caf::actor_system& system, const RunBasis& basis);

actors::DataActor spawn_evaluation_data(caf::actor_system& system,
                                        const RunBasis& basis);

} // namespace troupe::runtime
