#include "runtime/planning/machine_hardware.hpp"

#include "config/base/error.hpp"
#include "runtime/base/processor_name.hpp"
#include "runtime/planning/device_memory.hpp"
#include "runtime/planning/resolve_cluster.hpp"

#include <algorithm>

namespace troupe::runtime {

plans::Hardware machine_hardware(const Settings& settings,
                                 std::uint32_t devices_per_node) {
  return device_kind(settings) == "gpu"
           ? gpu_hardware(net::find_gpus(), devices_per_node)
           : plans::load_hardware("laptop");
}

plans::Hardware gpu_hardware(const net::GpuReport& gpus,
                             std::uint32_t devices_per_node) {
  TROUPE_CHECK(!gpus.names.empty(), "numbers of GPUs that do not exist");
  const auto oldest = std::ranges::min_element(gpus.generations);
  const auto of_oldest
    = static_cast<std::size_t>(oldest - gpus.generations.begin());
  auto hardware = plans::hardware_of_gpu(gpus.names[of_oldest], *oldest);
  hardware.devices_per_node = devices_per_node;
  set_number(hardware, "device.mem_bytes",
             static_cast<double>(gpu_memory_bytes(gpus, devices_per_node)),
             "measured: as the driver says");
  hardware.reserve_bytes = 0;
  hardware.sources.erase("device.reserve_bytes");
  return hardware;
}

std::string machine_name(const Settings& settings) {
  return device_kind(settings) == "gpu" ? profiled_name(net::find_gpus().names)
                                        : profiled_name();
}

} // namespace troupe::runtime
