// fast_exp and fast_log against the double-precision library.
#include "models/kernels/host_math.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::models {
namespace {

TEST(HostMath, LogIsWithinTwoUlp) {
  for (int i = 1; i < 200000; ++i) {
    const float x = std::exp(static_cast<float>(i) * 8e-4F - 80.0F);
    const double exact = std::log(static_cast<double>(x));
    const double ulp = std::max(std::abs(exact), 1e-30) * 0x1p-23;
    ASSERT_NEAR(fast_log(x), exact, 2 * ulp) << x;
  }
}

TEST(HostMath, LogNearOneKeepsItsRelativePrecision) {
  for (int i = -2000; i < 2000; ++i) {
    const float x = 1.0F + static_cast<float>(i) * 0x1p-23F;
    const double exact = std::log(static_cast<double>(x));
    ASSERT_NEAR(fast_log(x), exact, std::abs(exact) * 3e-7) << i;
  }
}

TEST(HostMath, ExpIsWithinTwoUlp) {
  for (int i = 0; i < 200000; ++i) {
    const float x = static_cast<float>(i) * 8.7e-4F - 86.9F;
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(fast_exp(x), exact, exact * 2.5e-7) << x;
  }
}

TEST(HostMath, ExpOfMinusInfinityIsZero) {
  EXPECT_EQ(fast_exp(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_EQ(fast_exp(-1000.0F), 0.0F);
  EXPECT_EQ(fast_exp(0.0F), 1.0F);
}

} // namespace
} // namespace troupe::models
