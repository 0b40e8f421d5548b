#include "config/base/error.hpp"
#include "net/collectives/channel.hpp"
#include "runtime/planning/profile_links.hpp"
#include "runtime/planning/profile_pool.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <stdexcept>

using ::testing::HasSubstr;

namespace troupe::runtime {
namespace {

plans::Cluster devices(std::uint32_t count, std::uint32_t workers) {
  return {.nodes = 1, .devices_per_node = count, .workers_per_node = workers};
}

TEST(ProfilePool, AllDevicesWorkConcurrently) {
  ProfilePool pool(devices(3, 1), 0);
  std::barrier everybody(3); // a single member waits forever
  std::atomic<int> rounds = 0;
  EXPECT_GT(pool.seconds(3,
                         [&](std::uint32_t) {
                           everybody.arrive_and_wait();
                           ++rounds;
                         }),
            0);
  EXPECT_EQ(rounds, 3 * 4) << "a warm-up and three rounds";
}

TEST(ProfilePool, GroupsSumOverNeighboursInAndBetweenWorkers) {
  for (const auto workers : {1u, 4u}) {
    ProfilePool pool(devices(5, workers), 0);
    const auto groups = pool.groups_of(2);
    EXPECT_EQ(groups[4], nullptr) << "left over";
    pool.together(4, [&](std::uint32_t device) {
      auto sum = static_cast<float>(device);
      groups[device]->all_reduce_sum(&sum, 1, DType::f32, "test");
      EXPECT_EQ(sum, device < 2 ? 1 : 5);
    });
  }
}

TEST(ProfileLinks, TheCacheHasItsShareOfTheMeasuredMemory) {
  ProfilePool pool(devices(1, 1), 0);
  auto hardware = plans::load_hardware("laptop");
  measure_links(pool, 1 << 20, hardware);
  EXPECT_DOUBLE_EQ(hardware.cache_Bps,
                   plans::host_cache_share * hardware.mem_Bps);
  EXPECT_EQ(hardware.sources.at("device.cache_Bps"),
            "assumed: 0.6 of the measured mem_Bps");
}

TEST(ProfilePool, ChannelsJoinPairs) {
  ProfilePool pool(devices(2, 2), 0);
  const auto ends = pool.channels();
  pool.together(2, [&](std::uint32_t device) {
    int number = static_cast<int>(device);
    ends[device]->send(&number, sizeof number, "test");
    ends[device]->receive(&number, sizeof number, "test");
    EXPECT_EQ(number, 1 - static_cast<int>(device));
  });
}

TEST(ProfilePool, TheFirstFailureEndsTheWaitsOfOthers) {
  ProfilePool pool(devices(2, 1), 0);
  const auto groups = pool.groups_of(2);
  try {
    pool.seconds(2, [&](std::uint32_t device) {
      if (device == 1)
        throw std::runtime_error("out of paper");
      groups[device]->barrier("test");
    });
    FAIL() << "no failure";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("out of paper"));
  }
}

} // namespace
} // namespace troupe::runtime
