// Who takes part in a call, out of what the workers of a run have set up.
#pragma once

#include "actors/call_actor.hpp"
#include "runtime/session_actors.hpp"

namespace troupe::runtime {

/// The shards of a replica in mesh order.
std::vector<actors::Member>
members_of(const RunBasis& basis, const plans::Replica& replica,
           const std::vector<actors::SetupDone>& ready);
/// The workers that may run `setup.call`, a function; where an own actor is not
/// on each of them, with the worker that takes the samples of each.
void place_function(const RunBasis& basis,
                    const std::vector<actors::SetupDone>& ready,
                    actors::CallSetup& setup);

} // namespace troupe::runtime
