#include "plans/cost/profile_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::plans {
namespace {

TEST(ProfileFit, TwoSizesGiveLatencyAndBandwidth) {
  const std::vector<TimedWork> sends
    = {{4096, 20e-6 + 4096 / 2e9}, {8 << 20, 20e-6 + (8 << 20) / 2e9}};
  const auto line = fit_work(sends);
  EXPECT_NEAR(line.fixed_s, 20e-6, 1e-9);
  EXPECT_NEAR(line.rate, 2e9, 1e4);
  EXPECT_NEAR(line.knee(), 40e3, 10);
}

TEST(ProfileFit, SmallAndLargeSizesHaveEqualWeight) {
  // 10 % too long and 10 % too short at the ends: the middle stays
  const std::vector<TimedWork> noisy
    = {{1, 1.1 * (1e-3 + 1e-6)}, {1000, 2e-3}, {1e6, 0.9 * (1e-3 + 1.0)}};
  const auto line = fit_work(noisy);
  EXPECT_NEAR(line.fixed_s, 1.1e-3, 0.1e-3);
  EXPECT_NEAR(line.rate, 1.1e6, 0.1e6);
}

TEST(ProfileFit, ANegativeInterceptIsSetToZero) {
  const auto line
    = fit_work(std::vector<TimedWork>{{10, 1e-3}, {1000, 200e-3}});
  EXPECT_EQ(line.fixed_s, 0);
  EXPECT_GT(line.rate, 5000);
  EXPECT_LT(line.rate, 10000);
}

TEST(ProfileFit, EqualTimesStillGiveARate) {
  const auto line = fit_work(std::vector<TimedWork>{{10, 2e-3}, {20, 1e-3}});
  EXPECT_EQ(line.fixed_s, 0);
  EXPECT_GT(line.rate, 5000);
}

TEST(ProfileFit, OneSizeGivesARateAndNoneGivesNothing) {
  const auto one = fit_work(std::vector<TimedWork>{{100, 0.5}});
  EXPECT_EQ(one.fixed_s, 0);
  EXPECT_NEAR(one.rate, 200, 1e-9);
  EXPECT_EQ(fit_work({}).rate, 0);
}

TEST(ProfileFit, SizesAreOnBothSidesOfAnyKnee) {
  const auto has_neighbours = [](std::uint32_t most, std::uint32_t knee) {
    const auto sizes = profile_sizes(most);
    return std::ranges::any_of(sizes, [&](auto s) { return s < knee; })
           && std::ranges::any_of(
             sizes, [&](auto s) { return s > knee && s < 8 * knee; });
  };
  for (const std::uint32_t knee : {2u, 3u, 9u, 40u, 63u})
    EXPECT_TRUE(has_neighbours(64, knee)) << knee;
}

TEST(ProfileFit, TheEndsAreMeasuredFirst) {
  EXPECT_EQ(profile_sizes(64), (std::vector<std::uint32_t>{1, 64, 4, 16}));
  EXPECT_EQ(profile_sizes(5), (std::vector<std::uint32_t>{1, 5, 4}));
  EXPECT_EQ(profile_sizes(1), (std::vector<std::uint32_t>{1}));
}

} // namespace
} // namespace troupe::plans
