#include "runtime/base/last_resort.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;

/// Starts the program anew for each test: a forked process would lack the
/// thread of an AwakeClock that was used before.
class LastResortDeathTest : public ::testing::Test {
protected:
  LastResortDeathTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(LastResortDeathTest, EndsAProcessThatWaitsForever) {
  EXPECT_EXIT(
    {
      LastResort resort("master");
      resort.arm(50ms, ExitCode::stopped);
      ::pause();
    },
    ::testing::ExitedWithCode(static_cast<int>(ExitCode::stopped)),
    "error: master: did not end within 0.1 s");
}

TEST_F(LastResortDeathTest, LeavesAProcessThatEndsByItself) {
  EXPECT_EXIT(
    {
      {
        LastResort unused("master");
        LastResort resort("master");
        resort.arm(60s, ExitCode::failed);
      }
      ::_exit(3);
    },
    ::testing::ExitedWithCode(3), "^$");
}

TEST_F(LastResortDeathTest, DoesNotCountSuspendedTime) {
  EXPECT_EXIT(
    {
      {
        LastResort resort("master");
        resort.arm(3s, ExitCode::failed);
        const pid_t self = ::getpid();
        const auto end = std::chrono::steady_clock::now() + 4s;
        if (::fork() == 0) {
          ::kill(self, SIGSTOP);
          ::sleep(4);
          ::kill(self, SIGCONT);
          ::_exit(0);
        }
        while (std::chrono::steady_clock::now() < end) {
        }
      }
      ::_exit(3);
    },
    ::testing::ExitedWithCode(3), "^$");
}

} // namespace
} // namespace troupe::runtime
