#include "actors/worker/shard_memory.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

TEST(ShardMemory, TheAllocatorGetsWhatPlansUseAndHalfOfWhatTheyLeave) {
  Settings settings;
  settings.cluster.device = "gpu";
  settings.cluster.reserves.device_memory = 0.1;
  EXPECT_EQ(allocator_bytes(settings, 1000), 950u);
  settings.cluster.reserves.device_memory = 0.0;
  EXPECT_EQ(allocator_bytes(settings, 1000), 1000u);
}

} // namespace
} // namespace troupe::actors
