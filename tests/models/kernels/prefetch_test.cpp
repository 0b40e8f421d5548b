#include "models/kernels/prefetch.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::models {
namespace {

std::int64_t shares_until_done(Prefetch lines) {
  std::int64_t calls = 0;
  for (; !lines.done(); ++calls)
    lines.ask();
  return calls;
}

TEST(Prefetch, RequestsEveryLineOfItsShares) {
  const std::vector<float> memory(16 * 1000);
  EXPECT_EQ(shares_until_done({memory.data(), {10, 40, 100}, 30}), 30);
  EXPECT_EQ(shares_until_done({memory.data(), {10, 40, 100}, 6}), 6);
  EXPECT_EQ(shares_until_done({memory.data(), {10, 48, 100}, 1}), 1);
}

TEST(Prefetch, MoreSharesThanLinesAreOneLineEach) {
  const std::vector<float> memory(64);
  EXPECT_EQ(shares_until_done({memory.data(), {1, 33, 0}, 1000}), 3);
}

TEST(Prefetch, AnEmptyRangeEndsAtOnce) {
  EXPECT_TRUE(Prefetch{}.done());
}

} // namespace
} // namespace troupe::models
