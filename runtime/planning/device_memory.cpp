#include "runtime/planning/device_memory.hpp"

#include "runtime/base/host_memory.hpp"

#include <algorithm>

namespace troupe::runtime {

std::uint64_t device_memory_bytes(const Settings& settings,
                                  std::uint32_t devices_per_node) {
  if (settings.cluster.device != "gpu")
    return host_memory_bytes_of_device(devices_per_node);
  return gpu_memory_bytes(net::find_gpus(), devices_per_node);
}

std::uint64_t gpu_memory_bytes(const net::GpuReport& gpus,
                               std::uint32_t devices_per_node) {
  if (gpus.memory_bytes.empty())
    return 0;
  const auto smallest = *std::ranges::min_element(gpus.memory_bytes);
  const auto count = static_cast<std::uint32_t>(gpus.memory_bytes.size());
  const auto sharers = (std::max(1U, devices_per_node) + count - 1) / count;
  return smallest / sharers;
}

} // namespace troupe::runtime
