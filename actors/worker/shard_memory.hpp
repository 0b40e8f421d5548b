// The memory of a shard's device: what its plan leaves to libtorch's allocator
// of a GPU, and how much of the device was used.
#pragma once

#include "actors/worker/shard_actor.hpp"

#include <cstdint>
#include <vector>

namespace troupe::actors {

/// Returns the bytes of a device's memory, which has `device_bytes`, that the
/// allocator of a GPU may take: what plans may use, and half of what they leave
/// free, for fragments and what they do not count; the other half is for the
/// driver and NCCL.
std::uint64_t allocator_bytes(const Settings& settings,
                              std::uint64_t device_bytes);

/// Returns the backend of the shard's device, a GPU.
models::Backend& gpu_backend_of(const Shard& shard);

/// Limits the allocator to the parts of the shard's GPU that the devices of
/// this process have. Other processes that share it have theirs.
void limit_memory(const Shard& shard);

/// Begins the peak of the shard's device anew.
void begin_peak(const Shard& shard);
/// Returns it: bytes of planes and tensors, and on a GPU that no other device
/// of this process shares all that was taken of it, temporaries of operations
/// too.
std::vector<PeakMemory> peaks_of(const Shard& shard);

} // namespace troupe::actors
