
#include <gtest/gtest.h>

#include "troupe/detail/crash_context.hpp"

#include <csignal>
#include <cstdlib>
#include <string>

namespace {

using troupe::CrashContext;

TEST(CrashContext, IsSetWithinItsScope) {
  EXPECT_EQ(CrashContext::now(), "");
  {
    const CrashContext crash_context("user-defined actor checker");
    EXPECT_EQ(CrashContext::now(), "user-defined actor checker");
  }
  EXPECT_EQ(CrashContext::now(), "");
}

TEST(CrashContextDeathTest, ACrashNamesIt) {
  for (const int number : {SIGSEGV, SIGABRT})
    EXPECT_EXIT(
      {
        std::signal(number, SIG_DFL); // sanitizers have their own handlers
        troupe::tell_work_on_crash();
        const CrashContext crash_context(
          "user-defined actor checker with sample 3 of step 1"
          + std::string(500, '!'));
        std::raise(number);
      },
      ::testing::KilledBySignal(number),
      "crashed in user-defined actor checker with sample 3 of step 1");
}

TEST(CrashContextDeathTest, ACrashOutsideAnyContextPrintsNothing) {
  EXPECT_EXIT(
    {
      troupe::tell_work_on_crash();
      std::abort();
    },
    ::testing::KilledBySignal(SIGABRT), "^$");
}

} // namespace
