#include "config/base/awake_clock.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>

namespace troupe {
namespace {

using namespace std::chrono_literals;

class AwakeClockTest : public ::testing::Test {
protected:
  /// Returns the time awake since the start, read `later` after it.
  std::chrono::steady_clock::duration
  since(std::chrono::steady_clock::duration later) const {
    return time_.at(start_ + later) - begin_;
  }

  const std::chrono::steady_clock::time_point start_
    = std::chrono::steady_clock::now();
  AwakeTime time_{start_};
  const std::chrono::steady_clock::duration begin_ = time_.at(start_);
};

TEST_F(AwakeClockTest, EqualsASteadyClockWhileItIsRead) {
  for (auto now = 0ms; now < 100s; now += 250ms) {
    EXPECT_EQ(since(now + 100ms), now + 100ms);
    time_.look(start_ + now + 250ms);
  }
}

TEST_F(AwakeClockTest, StopsDuringALongGapBetweenTwoReads) {
  time_.look(start_ + 1s);
  const auto asleep = since(500s);
  EXPECT_LT(asleep, 3s) << "who wakes first asks before anybody looked";
  time_.look(start_ + 500s);
  EXPECT_EQ(since(500s), asleep);
  EXPECT_EQ(since(501s), asleep + 1s);
}

TEST(AwakeClock, AdvancesInARunningProcess) {
  const auto begin = AwakeClock::now();
  const auto end = std::chrono::steady_clock::now() + 20ms;
  while (std::chrono::steady_clock::now() < end) {
  }
  EXPECT_GE(AwakeClock::now() - begin, 20ms);
}

TEST(AwakeClockDeathTest, StopsInASuspendedProcess) {
  EXPECT_EXIT(
    {
      const pid_t self = ::getpid();
      const auto begin = AwakeClock::now();
      const auto steady = std::chrono::steady_clock::now();
      if (::fork() == 0) {
        ::kill(self, SIGSTOP);
        ::sleep(4);
        ::kill(self, SIGCONT);
        ::_exit(0);
      }
      while (std::chrono::steady_clock::now() - steady < 4s) {
      }
      ::_exit(AwakeClock::now() - begin < 3s ? 0 : 1);
    },
    ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace troupe
