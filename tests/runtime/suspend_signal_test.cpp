#include "runtime/suspend_signal.hpp"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

TEST(SuspendSignal, IsToldOnceAndDoesNotStopTheProcessByItself) {
  SuspendSignal signal;
  EXPECT_FALSE(signal.came());
  std::raise(SIGTSTP);
  EXPECT_TRUE(signal.came());
  EXPECT_FALSE(signal.came());
}

TEST(SuspendSignal, StaysIgnoredWhereItWasAndComesBackAsItWas) {
  const auto before = std::signal(SIGTSTP, SIG_IGN);
  {
    SuspendSignal signal;
    std::raise(SIGTSTP);
    EXPECT_FALSE(signal.came());
  }
  EXPECT_EQ(std::signal(SIGTSTP, before), SIG_IGN);
}

} // namespace
} // namespace troupe::runtime
