// The collectives and channels of a shard: one group a mesh axis, the ring of
// pipeline stages.
#pragma once

#include "actors/shard_actor.hpp"

namespace troupe::actors {

/// Joins all groups that the shard's coordinate is in; its engine is there.
/// Waits for nobody.
models::Groups join_groups(Shard& shard);

} // namespace troupe::actors
