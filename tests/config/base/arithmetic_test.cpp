#include "config/base/arithmetic.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace troupe {
namespace {

TEST(Arithmetic, RoundsDivisionsUpwards) {
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(ceil_div(4, 4), 1);
  EXPECT_EQ(ceil_div(5, 4), 2);
  EXPECT_EQ(ceil_div(std::uint64_t{1} << 40, std::uint64_t{3}), 366503875926U);
}

TEST(Arithmetic, RoundsNumbersUpToMultiples) {
  EXPECT_EQ(round_up(0, 16), 0);
  EXPECT_EQ(round_up(16, 16), 16);
  EXPECT_EQ(round_up(17, 16), 32);
}

} // namespace
} // namespace troupe
