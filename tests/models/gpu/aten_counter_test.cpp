#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "tests/support/models/aten_counter.hpp"

#include <set>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::AtenCounter;

TEST(AtenCounter, CountsKernelsAndTheirBytesAndNamesWhatItDoesNotKnow) {
  const at::Tensor x = at::empty({8, 4});
  const AtenCounter counter;
  x.narrow(0, 0, 2).t().zero_(); // 2 x 4 floats written
  EXPECT_EQ(counter.counts().words(), "zero 1");
  EXPECT_EQ(counter.counts().bytes, 32);
  x.narrow(0, 0, 2).add_(x.narrow(0, 2, 1).expand({2, 4}));
  EXPECT_EQ(counter.counts().words(), "add 1, zero 1");
  EXPECT_EQ(counter.counts().bytes, 32 + 2 * 32 + 16);
  x.square(); // by its parts
  EXPECT_EQ(counter.counts().words(), "add 1, pow 1, zero 1");
  EXPECT_EQ(counter.counts().unknown, std::set<std::string>{});
  x.cosh();
  EXPECT_EQ(counter.counts().unknown, std::set<std::string>{"cosh"});
}

} // namespace
} // namespace troupe::models
