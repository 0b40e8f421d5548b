// How much memory this host, or the container around us, has.
#pragma once

#include <cstdint>

namespace troupe::runtime {

/// All of it: the smaller of the machine's and the container's limit; 0: the
/// system does not say.
std::uint64_t host_memory_bytes();
/// Of each of so many devices, which share it; 0: the system does not say.
std::uint64_t host_memory_bytes_of_device(std::uint32_t devices);
/// What could be taken now without swapping; 0: the system does not say.
std::uint64_t available_memory_bytes();

} // namespace troupe::runtime
