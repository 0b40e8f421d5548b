// Copies of a device's numbers, over a memory that faults when the host touches
// it.
#include "net/base/host_copy.hpp"

#include <gtest/gtest.h>

#include "tests/support/net/far_pages.hpp"

#include <vector>

namespace troupe::net {
namespace {

using troupe::testing::FarPages;

std::vector<float> values_of(const float* data) {
  const HostRead copy(&FarPages::memory(), data, 3 * sizeof(float));
  return {copy.floats(), copy.floats() + 3};
}

TEST(HostCopy, MemoryOfTheHostIsUsedInPlace) {
  std::vector<float> values{1, 2, 3};
  const HostRead read(nullptr, values.data(), 3 * sizeof(float));
  EXPECT_EQ(read.floats(), values.data());
  const HostWrite change(nullptr, values.data(), 3 * sizeof(float),
                         OldContent::ignored);
  change.floats()[1] = 5;
  change.put_back();
  EXPECT_EQ(values, (std::vector<float>{1, 5, 3}));
}

TEST(HostCopy, MemoryOfADeviceChangesWhenItIsPutBack) {
  auto* data = static_cast<float*>(FarPages::memory().take(3 * sizeof(float)));
  const HostWrite change(&FarPages::memory(), data, 3 * sizeof(float),
                         OldContent::ignored);
  EXPECT_EQ(change.floats()[2], 0) << "ignored content is zero in the copy";
  change.floats()[2] = 7;
  EXPECT_EQ(values_of(data), (std::vector<float>{0, 0, 0}));
  change.put_back();
  EXPECT_EQ(values_of(data), (std::vector<float>{0, 0, 7}));
  const HostWrite again(&FarPages::memory(), data, 3 * sizeof(float),
                        OldContent::needed);
  EXPECT_EQ(again.floats()[2], 7);
}

TEST(HostCopyDeathTest, AnAddressOfTheDeviceFaults) {
  auto* data = static_cast<float*>(FarPages::memory().take(3 * sizeof(float)));
  EXPECT_DEATH(data[0] = 1, "");
}

} // namespace
} // namespace troupe::net
