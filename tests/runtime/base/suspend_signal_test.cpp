#include "runtime/base/suspend_signal.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <vector>

namespace troupe::runtime {
namespace {

TEST(SuspendSignal, IsPendingUntilSigcontAndDoesNotStopTheProcess) {
  SuspendSignal signal;
  EXPECT_FALSE(signal.came());
  std::raise(SIGTSTP);
  EXPECT_TRUE(signal.came());
  EXPECT_TRUE(signal.came());
}

TEST(SuspendSignal, IsClearedByAnEarlierSigcont) {
  SuspendSignal signal;
  std::raise(SIGTSTP);
  std::raise(SIGCONT);
  EXPECT_FALSE(signal.came());
  std::raise(SIGTSTP);
  EXPECT_TRUE(signal.came());
}

TEST(SuspendSignal, AProcessThatIsContinuedWhileStoppingWorkersContinues) {
  SuspendSignal signal;
  std::raise(SIGTSTP);
  std::vector<int> sent;
  signal.suspend([&](int number) {
    if (sent.empty())
      std::raise(SIGCONT);
    sent.push_back(number);
  });
  EXPECT_EQ(sent, (std::vector<int>{SIGSTOP, SIGCONT}));
}

TEST(SuspendSignalDeathTest, StopsWithItsWorkersUntilSigcont) {
  EXPECT_EXIT(
    {
      SuspendSignal signal;
      std::raise(SIGTSTP);
      const pid_t self = ::getpid();
      std::vector<int> sent;
      signal.suspend([&](int number) {
        sent.push_back(number);
        if (number == SIGSTOP && ::fork() == 0) {
          ::sleep(1);
          ::kill(self, SIGCONT);
          ::_exit(0);
        }
      });
      std::vector<int> expected;
      expected.push_back(SIGSTOP);
      expected.push_back(SIGCONT);
      const bool is_right = sent == expected && !signal.came();
      ::_exit(is_right ? 0 : 1);
    },
    ::testing::ExitedWithCode(0), "");
}

TEST(SuspendSignal, StaysIgnoredWhereItWasAndIsRestored) {
  const auto before = std::signal(SIGTSTP, SIG_IGN);
  const auto before_continue = std::signal(SIGCONT, SIG_IGN);
  {
    SuspendSignal signal;
    std::raise(SIGTSTP);
    EXPECT_FALSE(signal.came());
  }
  EXPECT_EQ(std::signal(SIGTSTP, before), SIG_IGN);
  { SuspendSignal signal; }
  EXPECT_EQ(std::signal(SIGCONT, before_continue), SIG_IGN);
}

} // namespace
} // namespace troupe::runtime
