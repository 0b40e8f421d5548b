// How much memory a device of a run has: that of its GPU, or its share of the
// host's.
#pragma once

#include "config/settings.hpp"

#include <cstdint>

namespace troupe::runtime {

/// Of each of the devices of a host like this one, all of it; 0: nobody says.
/// `cluster.device` auto counts as cpu. GPUs that several devices share are
/// theirs in equal parts; of unequal GPUs the smallest counts.
std::uint64_t device_memory_bytes(const Settings& settings,
                                  std::uint32_t devices_per_node);

} // namespace troupe::runtime
