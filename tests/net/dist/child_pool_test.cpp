#include "config/base/error.hpp"
#include "net/child_programs/child_pool.hpp"

#include "tests/net/dist/forked_peer.hpp"
#include "tests/net/dist/held_dead.hpp"
#include "tests/support/temp_folder.hpp"
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <span>
#include <sstream>
#include <thread>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using support::read_text;
using ::testing::HasSubstr;

class ChildPoolTest : public ::testing::Test {
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

TEST_F(ChildPoolTest, ReportHowTheyEnded) {
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

TEST(ChildPool, IsNotWaitedForBeforeEachEndIsReported) {
  std::promise<void> called;
  std::promise<void> may_return;
  ChildPool pool([&](const ChildExit&) {
    called.set_value();
    may_return.get_future().wait();
  });
  pool.start({.name = "child", .argv = {"true"}});
  called.get_future().wait();
  EXPECT_TRUE(pool.running().empty());
  EXPECT_FALSE(pool.wait_all(0ms));
  may_return.set_value();
  EXPECT_TRUE(pool.wait_all(20s));
}

TEST_F(ChildPoolTest, WritingToOneThatHasEndedIsAnError) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  auto child = shell("exit");
  child.input = ends[0];
  pool_.start(child);
  ASSERT_TRUE(pool_.wait_all(20s));
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(ends[1]);
}

TEST_F(ChildPoolTest, WriteToTheirFileInTheirFolderWithTheirEnvironment) {
  ChildSpec spec = shell("pwd; echo $TROUPE_CHILD; echo oops >&2");
  spec.environment = {{"TROUPE_CHILD", "hello"}};
  spec.working_folder = folder_;
  pool_.start(spec);
  ASSERT_TRUE(pool_.wait_all(20s));
  EXPECT_EQ(read_text(folder_ / "output"),
            folder_.string() + "\nhello\noops\n");
}

TEST_F(ChildPoolTest, ThatCannotStartNameTheReason) {
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

TEST_F(ChildPoolTest, InheritNoDescriptor) {
  // A descriptor without close-on-exec, with a number that no shell uses.
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

TEST_F(ChildPoolTest, AreStoppedWithTheirOwnChildren) {
  // The shell ignores SIGTERM; its child would outlive it.
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
  while (alive()) // SIGKILL was sent; the process takes a moment to end
    std::this_thread::yield();
}

TEST_F(ChildPoolTest, ADetachedProgramIsNoChild) {
  ChildSpec spec = shell("read pid name state parent group session rest"
                         " </proc/self/stat; echo $parent $session >part;"
                         " mv part ids");
  spec.working_folder = folder_;
  start_detached(spec);
  while (!std::filesystem::exists(folder_ / "ids"))
    std::this_thread::yield();
  std::istringstream ids(read_text(folder_ / "ids"));
  pid_t parent = 0, session = 0;
  ids >> parent >> session;
  EXPECT_NE(parent, 0);
  EXPECT_NE(parent, ::getpid());
  EXPECT_NE(session, ::getsid(0));
  EXPECT_TRUE(pool_.running().empty());
  spec.argv = {"/no/such/program"};
  EXPECT_THROW(start_detached(spec), FailureError);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

/// Runs `body` in another process, which is killed once it has written a
/// number to `file`; returns the number.
pid_t number_from_killed(
  const std::filesystem::path& file,
  const std::function<void(const testing::Talk&)>& body) {
  testing::ForkedPeer peer(body);
  while (read_text(file).find('\n') == std::string::npos)
    std::this_thread::yield();
  peer.signal(SIGKILL);
  peer.wait();
  return std::stoi(read_text(file));
}

bool ends_within(pid_t pid, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    const auto stat = read_text("/proc/" + std::to_string(pid) + "/stat");
    if (stat.empty() || stat.find(" Z ") != std::string::npos)
      return true;
    std::this_thread::yield();
  }
  return false;
}

TEST(ChildPool, WhatProgramsOfTheUserStartedEndsWithAKilledParent) {
  const support::TempFolder folder;
  const auto output = folder / "output";
  const auto grandchild = number_from_killed(output, [&](const testing::Talk&) {
    ChildPool pool;
    ChildSpec spec;
    spec.name = "program";
    spec.trust = Trust::users;
    spec.argv = {"true"};
    pool.start(spec); // the guard must forget it
    pool.wait_all(20s);
    spec.argv = {"sh", "-c", "sleep 1000 & echo $!; wait"};
    spec.output_file = output;
    pool.start(spec);
    ::pause();
  });
  const bool ended = ends_within(grandchild, 20s);
  ::kill(grandchild, SIGKILL);
  EXPECT_TRUE(ended);
}

TEST_F(ChildPoolTest, OfTheUserGetNoSecretsOfTheEnvironment) {
  EXPECT_TRUE(is_secret_variable("WANDB_API_KEY"));
  EXPECT_TRUE(is_secret_variable("hf_token"));
  EXPECT_FALSE(is_secret_variable("PATH"));
  for (const char* name :
       {"A_KEY", "B_TOKEN", "C_Secret", "D_PASSWORD_E", "PASSED_KEY", "PLAIN"})
    ::setenv(name, "value", 1);
  auto spec = shell("env");
  spec.trust = Trust::users;
  spec.environment = {{"OWN_KEY", "own"}};
  let_variables_through({{"PASSED_KEY", ""}});
  pool_.start(spec);
  ASSERT_TRUE(pool_.wait_all(20s));
  let_variables_through({});
  const auto got = read_text(folder_ / "output");
  for (const char* kept :
       {"PASSED_KEY=value\n", "PLAIN=value\n", "OWN_KEY=own\n", "PATH="})
    EXPECT_THAT(got, HasSubstr(kept));
  for (const char* dropped : {"A_KEY", "B_TOKEN", "C_Secret", "D_PASSWORD_E"}) {
    EXPECT_THAT(got, ::testing::Not(HasSubstr(dropped)));
    ::unsetenv(dropped);
  }
  ::unsetenv("PASSED_KEY");
  ::unsetenv("PLAIN");
}

TEST_F(ChildPoolTest, OfTheUserCannotRaiseLimitsOrPrivileges) {
  auto spec = shell("ulimit -Hf; grep NoNewPrivs /proc/self/status");
  spec.trust = Trust::users;
  spec.limits = {{RLIMIT_FSIZE, std::uint64_t{1} << 20}};
  pool_.start(spec);
  ASSERT_TRUE(pool_.wait_all(20s));
  const auto got = read_text(folder_ / "output");
  EXPECT_THAT(got, ::testing::Not(HasSubstr("unlimited")));
  EXPECT_THAT(got, HasSubstr("NoNewPrivs:\t1\n"));
}

/// Returns the page faults of writing to each page once.
long faults_of_writing(std::span<std::byte> memory, std::byte value) {
  const auto faults = [] {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return used.ru_minflt;
  };
  const auto before = faults();
  constexpr std::size_t page_bytes = 4096;
  for (std::size_t at = 0; at < memory.size(); at += page_bytes)
    memory[at] = value;
  return faults() - before;
}

TEST_F(ChildPoolTest, AreStartedWithoutACopyOfOurMemory) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  void* place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  ::madvise(place, bytes, MADV_NOHUGEPAGE);
  const std::span memory{static_cast<std::byte*>(place), bytes};
  faults_of_writing(memory, std::byte{1});
  pool_.start(shell("true"));
  EXPECT_LT(faults_of_writing(memory, std::byte{2}), 1000)
    << "fork leaves 16,384 pages to be copied or at least found again";
  ::munmap(place, bytes);
}

TEST(ChildPool, DoesNotWaitForEverForAKilledChild) {
  const testing::HeldDead held;
  std::atomic<int> num_ends{0};
  const auto begin = std::chrono::steady_clock::now();
  {
    ChildPool pool([&](const ChildExit&) { ++num_ends; });
    ChildSpec spec;
    spec.name = "sleeper";
    spec.argv = {"sleep", "1000"};
    const pid_t pid = pool.start(spec);
    if (!held.hold(pid))
      GTEST_SKIP() << "this machine allows no tracing";
    pool.stop_all(0ms);
    EXPECT_THAT(pool.running(), ::testing::ElementsAre(pid));
    spec.name = "other";
    spec.argv = {"true"};
    pool.start(spec); // the pool still works
    while (num_ends == 0)
      std::this_thread::yield();
  }
  EXPECT_EQ(num_ends, 1) << "reported an end after its own";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
}

TEST_F(ChildPoolTest, ThatASignalStoppedAreKnown) {
  auto spec = shell("exec sleep 1000");
  spec.number = 7;
  const pid_t pid = pool_.start(spec);
  spec.number = 8;
  pool_.start(spec);
  EXPECT_THAT(pool_.stopped(), ::testing::IsEmpty());
  // told by this thread: the kernel reports either change of a child once
  const auto changes = [&](int signal_number, int awaited) {
    ::kill(-pid, signal_number);
    siginfo_t change{};
    ASSERT_EQ(
      ::waitid(P_PID, static_cast<id_t>(pid), &change, awaited | WNOWAIT), 0);
  };
  changes(SIGSTOP, WSTOPPED);
  EXPECT_THAT(pool_.stopped(), ::testing::ElementsAre(7));
  changes(SIGCONT, WCONTINUED);
  EXPECT_THAT(pool_.stopped(), ::testing::IsEmpty());
}

TEST(ChildPool, LeavesNoProcessRunning) {
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
