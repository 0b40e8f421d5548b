// Weights between devices: what a shard publishes for others, a move into it
// from another replica and out of it, and the copy of a whole model for a
// checkpoint. Plain functions over a Shard, on its device thread; they throw.
#pragma once

#include "actors/worker/shard_actor.hpp"

#include <cstddef>
#include <span>

namespace troupe::actors {

/// Publishes the planes of this shard that moves and checkpoints read.
void publish_planes(Shard& shard);
MoveDone move_shard(Shard& shard, StepId step, const MoveOrder& order);
/// Takes part in a move from this shard, if it sends to other hosts over NCCL.
MoveDone send_shard(Shard& shard, StepId step, const MoveOrder& order);
/// Copies the replica's weights, as a device that holds all of them has them.
/// Other shards' planes are read in place, as by `copy_shard`.
void gather_weights(Shard& shard, std::span<std::byte> whole);
/// Copies the replica's planes as a whole model into the shard's snapshot.
CopyDone copy_shard(Shard& shard, StepId step, const CopyOrder& order);

} // namespace troupe::actors
