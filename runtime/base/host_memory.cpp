#include "runtime/base/host_memory.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace troupe::runtime {

namespace {

/// Returns a line of /proc/meminfo in bytes; 0 if there is none.
std::uint64_t meminfo_bytes(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  for (std::string unit; file >> name >> kib; std::getline(file, unit))
    if (name == key + ":")
      return kib * 1024;
  return 0;
}

/// Returns the container's limit (cgroup 2, then 1); 0: none, or the word
/// "max".
std::uint64_t container_bytes() {
  for (const char* path : {"/sys/fs/cgroup/memory.max",
                           "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::uint64_t bytes = 0;
    if (std::ifstream(path) >> bytes)
      return bytes;
  }
  return 0;
}

} // namespace

std::uint64_t host_memory_bytes() {
  const auto machine = meminfo_bytes("MemTotal");
  const auto container = container_bytes();
  return machine == 0 || container == 0 ? std::max(machine, container)
                                        : std::min(machine, container);
}

std::uint64_t host_memory_bytes_of_device(std::uint32_t devices) {
  return host_memory_bytes() / std::max(1u, devices);
}

std::uint64_t available_memory_bytes() {
  return meminfo_bytes("MemAvailable");
}

} // namespace troupe::runtime
