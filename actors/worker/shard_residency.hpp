// Residency of a shard's planes: on the device for a call, in host memory
// between calls, or dropped. Plain functions on the device thread; they throw.
#pragma once

#include "actors/worker/shard_actor.hpp"

namespace troupe::actors {

/// Reloads planes for a call, offloads them to host memory after it, or drops
/// the weights.
ResidencyDone move_planes(Shard& shard, StepId step,
                          const ResidencyOrder& order);
/// Offloads, after loading, the planes that calls reload.
void begin_residency(Shard& shard);
/// Returns the bytes of the replica's planes on this device; also adds them and
/// the device's memory to the trace.
std::uint64_t count_planes(Shard& shard);

} // namespace troupe::actors
