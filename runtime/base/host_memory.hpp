// The memory of this host, or of the container that this process is in.
#pragma once

#include <cstdint>

namespace troupe::runtime {

/// Returns the total memory: the smaller of the machine's and the container's
/// limit; 0: unknown.
std::uint64_t host_memory_bytes();
/// Returns the share of each of so many devices; 0: unknown.
std::uint64_t host_memory_bytes_of_device(std::uint32_t devices);
/// Returns the memory that can be allocated now without swapping; 0: unknown.
std::uint64_t available_memory_bytes();

} // namespace troupe::runtime
