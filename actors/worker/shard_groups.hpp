// The collectives and channels of a shard: one group per mesh axis, and the
// ring of pipeline stages.
#pragma once

#include "actors/worker/shard_actor.hpp"

namespace troupe::actors {

/// Joins all groups that the shard's coordinate is in; its engine exists. Does
/// not block.
models::Groups join_groups(Shard& shard);

/// Returns the number of the shard's GPU in this process; 0 if it has none.
int gpu_of(const Shard& shard);

} // namespace troupe::actors
