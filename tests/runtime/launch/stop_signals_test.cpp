// Signals of users and of schedulers, which signal all processes of a job.
#include "runtime/launch/stop_signals.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <future>

namespace troupe::runtime {
namespace {

using ::testing::ExitedWithCode;

/// Ends this process with 0 if the first signal that was reported is `wanted`.
[[noreturn]] void raise_all(std::initializer_list<int> signals, int wanted) {
  std::promise<int> first;
  StopSignals watched([&](int signal) { first.set_value(signal); });
  for (const int signal : signals)
    std::raise(signal);
  std::_Exit(first.get_future().get() == wanted ? 0 : 1);
}

TEST(StopSignalsDeathTest, ATermThatIsSentTwiceIsOneRequest) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(raise_all({SIGTERM, SIGTERM, SIGTERM}, SIGTERM),
              ExitedWithCode(0), "");
}

TEST(StopSignalsDeathTest, ASecondCtrlCEndsAtOnce) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(raise_all({SIGINT, SIGINT}, SIGINT), ExitedWithCode(130), "");
  EXPECT_EXIT(raise_all({SIGTERM, SIGINT}, SIGTERM), ExitedWithCode(130), "");
}

TEST(StopSignalsDeathTest, AWorkerLivesAfterTerm) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
    {
      leave_term_to_master();
      std::raise(SIGTERM);
      std::_Exit(0);
    },
    ExitedWithCode(0), "");
}

} // namespace
} // namespace troupe::runtime
