#include "net/base/memory_count.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace troupe::net {
namespace {

TEST(MemoryCount, APeakCountsFromItsStart) {
  MemoryCount count;
  MemoryCharge stays{&count};
  stays.set(100);
  {
    MemoryCharge comes{&count};
    comes.set(50);
    comes.set(30);
    EXPECT_EQ(count.now_bytes(), 130u);
  }
  EXPECT_EQ(count.now_bytes(), 100u);
  EXPECT_EQ(count.peak_bytes(), 150u);
  count.begin_peak();
  EXPECT_EQ(count.peak_bytes(), 100u);
}

TEST(MemoryCount, MovedChargesStayWithTheirDevice) {
  MemoryCount device;
  MemoryCharge held{nullptr};
  std::thread([&] {
    device.count_this_thread();
    MemoryCharge made;
    made.set(64);
    held = std::move(made);
  }).join();
  EXPECT_EQ(MemoryCount::of_this_thread(), nullptr);
  EXPECT_EQ(device.now_bytes(), 64u);
  MemoryCharge moved = std::move(held);
  held.set(5);
  EXPECT_EQ(device.now_bytes(), 64u + 5u);
  moved.set(0);
  held.set(0);
  EXPECT_EQ(device.now_bytes(), 0u);
}

} // namespace
} // namespace troupe::net
