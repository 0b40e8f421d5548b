// Which process `troupe stop` may signal.
#include "config/base/error.hpp"
#include "runtime/run_folder/signal_master.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;

class SignalMaster : public ::testing::Test {
protected:
  SignalMaster() {
    folder_.create();
    lock_.emplace(folder_); // held by this process, not by the other one
    other_ = ::fork();
    if (other_ == 0) {
      ::close_range(first_, ~0U, 0);
      ::fcntl(0, F_DUPFD, mark_); // has closed what it inherited
      for (;;)
        ::pause();
    }
    while (!std::filesystem::exists("/proc/" + std::to_string(other_) + "/fd/"
                                    + std::to_string(mark_)))
      std::this_thread::yield();
  }
  ~SignalMaster() override {
    ::kill(other_, SIGKILL);
    ::waitpid(other_, nullptr, 0);
  }
  std::string refusal(std::int64_t pid) {
    try {
      signal_master(folder_, pid, 0);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  static constexpr int first_ = 3; ///< after the standard ones
  static constexpr int mark_ = 200;
  test::TempFolder temp_;
  RunFolder folder_{temp_.path() / "run"};
  std::optional<RunLock> lock_;
  pid_t other_ = 0;
};

TEST_F(SignalMaster, TheHolderOfTheLockIsSignaled) {
  EXPECT_EQ(refusal(::getpid()), "");
}

TEST_F(SignalMaster, AnyOtherProcessIsLeftAlone) {
  EXPECT_THAT(refusal(other_), HasSubstr("does not have its lock"));
  EXPECT_EQ(::waitpid(other_, nullptr, WNOHANG), 0);
}

TEST_F(SignalMaster, NumbersThatMeanManyProcessesAreRefused) {
  for (const std::int64_t pid : {std::int64_t{-1}, std::int64_t{0},
                                 std::int64_t{1}, std::int64_t{1} << 40})
    EXPECT_THAT(refusal(pid), HasSubstr("does not have its lock")) << pid;
}

} // namespace
} // namespace troupe::runtime
