// Tables that all layers read are copied to the device once.
#include "models/gpu/device_tables.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/aten_counter.hpp"

#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::AtenCounter;
using Numbers = std::vector<std::int32_t>;

Numbers held(const at::Tensor& table) {
  const auto* first = table.const_data_ptr<std::int32_t>();
  return {first, first + table.numel()};
}

TEST(DeviceTables, EqualNumbersAreCopiedOnce) {
  DeviceTables tables;
  const AtenCounter counter;
  for (int layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(held(tables.of(Numbers{1, 2, 3}, at::kCPU)), (Numbers{1, 2, 3}));
    EXPECT_EQ(held(tables.of(Numbers{1, 2}, at::kCPU)), (Numbers{1, 2}));
  }
  EXPECT_EQ(counter.counts().queued, 2);
}

TEST(DeviceTables, TheOneThatWasNotReadForLongestIsReplaced) {
  DeviceTables tables;
  const at::Tensor kept = tables.of(Numbers{0}, at::kCPU);
  const AtenCounter counter;
  for (std::int32_t i = 1; i < 20; ++i) {
    tables.of(Numbers{i}, at::kCPU);
    tables.of(Numbers{-1}, at::kCPU);
  }
  EXPECT_EQ(counter.counts().queued, 20);
  EXPECT_EQ(held(tables.of(Numbers{0}, at::kCPU)), Numbers{0});
  EXPECT_EQ(counter.counts().queued, 21);
  EXPECT_EQ(held(kept), Numbers{0}) << "a table that is in use stays";
}

} // namespace
} // namespace troupe::models
