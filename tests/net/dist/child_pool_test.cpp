#include "config/error.hpp"
#include "net/child_pool.hpp"

#include "tests/support/temp_folder.hpp"
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using support::read_text;
using ::testing::HasSubstr;

class Children : public ::testing::Test {
protected:
  ChildSpec shell(const std::string& script) const {
    ChildSpec spec;
    spec.name = "child";
    spec.argv = {"sh", "-c", script};
    spec.output_file = folder_ / "output";
    return spec;
  }
  std::vector<ChildExit> exits() {
    std::lock_guard lock(mutex_);
    return exits_;
  }

  const support::TempFolder temp_;
  const std::filesystem::path folder_ = temp_.path();
  std::mutex mutex_;
  std::vector<ChildExit> exits_;
  ChildPool pool_{[this](const ChildExit& exit) {
    std::lock_guard lock(mutex_);
    exits_.push_back(exit);
  }};
};

TEST_F(Children, ReportHowTheyEnded) {
  const pid_t one = pool_.start(shell("exit 3"));
  ASSERT_TRUE(pool_.wait_all(20s));
  const pid_t two = pool_.start(shell("kill -9 $$"));
  ASSERT_TRUE(pool_.wait_all(20s));
  const auto ended = exits();
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].pid, one);
  EXPECT_EQ(to_string(ended[0]), "exit code 3");
  EXPECT_EQ(ended[1].pid, two);
  EXPECT_EQ(to_string(ended[1]), "killed by signal 9 (Killed)");
  EXPECT_FALSE(pool_.signal(one, SIGTERM));
}

TEST_F(Children, WriteToTheirFileInTheirFolderWithTheirEnvironment) {
  ChildSpec spec = shell("pwd; echo $TROUPE_CHILD; echo oops >&2");
  spec.environment = {{"TROUPE_CHILD", "hello"}};
  spec.working_folder = folder_;
  pool_.start(spec);
  ASSERT_TRUE(pool_.wait_all(20s));
  EXPECT_EQ(read_text(folder_ / "output"),
            folder_.string() + "\nhello\noops\n");
}

TEST_F(Children, ThatCannotStartSayWhy) {
  ChildSpec spec = shell("");
  spec.argv = {"/no/such/program"};
  try {
    pool_.start(spec);
    FAIL();
  } catch (const FailureError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/no/such/program"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
  spec = shell("true");
  spec.output_file = folder_ / "missing" / "output";
  EXPECT_THROW(pool_.start(spec), FailureError);
  EXPECT_TRUE(pool_.running().empty());
}

TEST_F(Children, InheritNoDescriptor) {
  // Not close-on-exec, and a number that no shell uses for itself.
  const int descriptor = ::fcntl(1, F_DUPFD, 200);
  ASSERT_GE(descriptor, 200);
  pool_.start(shell("ls /proc/$$/fd"));
  ASSERT_TRUE(pool_.wait_all(20s));
  const std::string listed = read_text(folder_ / "output");
  EXPECT_THAT(listed, HasSubstr("1\n"));
  EXPECT_THAT(listed,
              ::testing::Not(HasSubstr(std::to_string(descriptor) + "\n")));
  ::close(descriptor);
}

TEST_F(Children, AreStoppedWithTheirOwnChildren) {
  // The shell ignores TERM; its child would outlive it.
  const pid_t pid = pool_.start(
    shell("trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000"));
  while (read_text(folder_ / "output").find('\n') == std::string::npos)
    std::this_thread::yield();
  const pid_t grandchild = std::stoi(read_text(folder_ / "output"));
  pool_.stop_all(100ms);
  EXPECT_TRUE(pool_.running().empty());
  const auto ended = exits();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].pid, pid);
  EXPECT_EQ(ended[0].signal, SIGKILL);
  const auto alive = [&] {
    const auto stat
      = read_text("/proc/" + std::to_string(grandchild) + "/stat");
    return !stat.empty() && stat.find(" Z ") == std::string::npos;
  };
  while (alive()) // SIGKILL was sent; dying takes its own moment
    std::this_thread::yield();
}

TEST(ChildPool, LeavesNobodyBehind) {
  pid_t pid = 0;
  {
    ChildPool pool;
    ChildSpec spec;
    spec.name = "sleeper";
    spec.argv = {"sleep", "1000"};
    pid = pool.start(spec);
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

} // namespace
} // namespace troupe::net
