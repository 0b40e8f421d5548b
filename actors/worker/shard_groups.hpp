// The collectives and channels of a shard: one group per mesh axis, and the
// ring of pipeline stages.
#pragma once

#include "actors/worker/shard_actor.hpp"

namespace troupe::actors {

/// Joins all groups that the shard's coordinate is in; its engine exists. Does
/// not block.
models::Groups join_groups(Shard& shard);

/// Adds NCCL for memory of GPUs, which the group's members agree on; on a CPU
/// it is the host's group.
std::shared_ptr<net::Collectives>
of_device(const Shard& shard, std::shared_ptr<net::Collectives> host);

/// Returns the number of the shard's GPU in this process; 0 if it has none.
int gpu_of(const Shard& shard);

} // namespace troupe::actors
