#include "config/error.hpp"
#include "runtime/last_resort.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;

TEST(LastResortDeathTest, EndsAProcessThatWaitsForEver) {
  EXPECT_EXIT(
    {
      LastResort resort("master");
      resort.arm(50ms);
      ::pause();
    },
    ::testing::ExitedWithCode(static_cast<int>(ExitCode::failed)),
    "error: master: did not end within 0.1 s");
}

TEST(LastResortDeathTest, LeavesAloneWhatEndsByItself) {
  EXPECT_EXIT(
    {
      {
        LastResort unused("master");
        LastResort resort("master");
        resort.arm(60s);
      }
      ::_exit(3);
    },
    ::testing::ExitedWithCode(3), "^$");
}

} // namespace
} // namespace troupe::runtime
