
#include <gtest/gtest.h>

#include "troupe/at_work.hpp"

#include <csignal>
#include <cstdlib>
#include <string>

namespace {

using troupe::AtWork;

TEST(AtWork, IsKnownWhileItLasts) {
  EXPECT_EQ(AtWork::now(), "");
  {
    const AtWork at_work("own actor checker");
    EXPECT_EQ(AtWork::now(), "own actor checker");
  }
  EXPECT_EQ(AtWork::now(), "");
}

TEST(AtWorkDeathTest, ACrashNamesIt) {
  for (const int number : {SIGSEGV, SIGABRT})
    EXPECT_EXIT(
      {
        std::signal(number, SIG_DFL); // sanitizers have their own
        troupe::tell_work_on_crash();
        const AtWork at_work("own actor checker with sample 3 of step 1"
                             + std::string(500, '!'));
        std::raise(number);
      },
      ::testing::KilledBySignal(number),
      "crashed in own actor checker with sample 3 of step 1");
}

TEST(AtWorkDeathTest, ACrashOfOursSaysNothing) {
  EXPECT_EXIT(
    {
      troupe::tell_work_on_crash();
      std::abort();
    },
    ::testing::KilledBySignal(SIGABRT), "^$");
}

} // namespace
