// The memory that plans are made and checked with is that of the devices.
#include "runtime/base/host_memory.hpp"
#include "runtime/planning/device_memory.hpp"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

net::GpuReport gpus_with(std::vector<std::uint64_t> memory_bytes) {
  net::GpuReport gpus;
  gpus.memory_bytes = std::move(memory_bytes);
  return gpus;
}

TEST(DeviceMemory, OfAGpuIsTheSmallestOfTheHost) {
  EXPECT_EQ(gpu_memory_bytes(gpus_with({80, 40, 80}), 3), 40u);
  EXPECT_EQ(gpu_memory_bytes(gpus_with({80, 80}), 1), 80u);
}

TEST(DeviceMemory, OfAGpuIsDividedAmongDevicesThatShareIt) {
  EXPECT_EQ(gpu_memory_bytes(gpus_with({80, 80}), 4), 40u);
  EXPECT_EQ(gpu_memory_bytes(gpus_with({80}), 3), 26u);
}

TEST(DeviceMemory, OfGpusIsNeverThatOfTheHost) {
  Settings settings;
  settings.cluster.device = "gpu";
  const auto gpus = net::find_gpus();
  EXPECT_EQ(device_memory_bytes(settings, 1), gpu_memory_bytes(gpus, 1));
  EXPECT_EQ(device_memory_bytes(settings, 1) == 0, gpus.names.empty());
  settings.cluster.device = "cpu";
  EXPECT_EQ(device_memory_bytes(settings, 2), host_memory_bytes_of_device(2));
}

} // namespace
} // namespace troupe::runtime
