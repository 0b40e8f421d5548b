// The collectives and channels of a shard: one group per mesh axis, and the
// ring of pipeline stages.
#pragma once

#include "actors/worker/shard_actor.hpp"
#include "net/collectives/nccl_agreement.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

/// Joins all groups that the shard's coordinate is in; its engine exists. Does
/// not block.
models::Groups join_groups(Shard& shard);

/// Adds NCCL for memory of GPUs, if all members have it; on a CPU it is the
/// host's group. `name`: of the group, for the log.
std::shared_ptr<net::Collectives>
of_device(const Shard& shard, const std::string& name,
          std::span<const Rank> members,
          std::shared_ptr<net::Collectives> host);

/// Returns what these devices have for NCCL, as their workers said when they
/// joined the run.
std::vector<net::NcclOffer> nccl_offers(const Shard& shard,
                                        std::span<const Rank> members);

/// Returns the number of the shard's GPU in this process; 0 if it has none.
int gpu_of(const Shard& shard);

} // namespace troupe::actors
