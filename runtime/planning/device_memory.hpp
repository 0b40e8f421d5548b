// The memory of a device of a run: that of its GPU, or its share of the host's.
#pragma once

#include "config/settings/settings.hpp"
#include "net/base/gpus.hpp"

#include <cstdint>

namespace troupe::runtime {

/// Returns the total memory of each of the devices of a host like this one; 0:
/// unknown. `cluster.device` auto counts as cpu. GPUs that several devices
/// share are divided equally; of unequal GPUs the smallest counts.
std::uint64_t device_memory_bytes(const Settings& settings,
                                  std::uint32_t devices_per_node);
/// Returns the same for a host with these GPUs.
std::uint64_t gpu_memory_bytes(const net::GpuReport& gpus,
                               std::uint32_t devices_per_node);

} // namespace troupe::runtime
