// Worker processes as the launcher sees them start and end.
#include "runtime/launch/launcher.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Pair;

/// Workers that run `program` instead of ours.
LaunchSpec spec_of(const RunFolder& folder, const std::string& program,
                   std::uint32_t workers) {
  return {
    .program = program,
    .address = "127.0.0.1:1",
    .token_file = "no_token",
    .cluster
    = {.nodes = 1, .devices_per_node = workers, .workers_per_node = workers},
    .folder = folder};
}

/// Returns true if the end of every worker was reported once, with its number.
bool all_ends_are_told(const RunFolder& folder, std::uint32_t workers) {
  std::mutex mutex;
  std::set<WorkerId> ended;
  Launcher launcher;
  launcher.start(spec_of(folder, "false", workers),
                 [&](WorkerId worker, const net::ChildExit& exit) {
                   const std::lock_guard lock{mutex};
                   if (exit.code == 1)
                     ended.insert(worker);
                 });
  launcher.end_all(10s);
  const std::lock_guard lock{mutex};
  return ended.size() == workers && *ended.rbegin() == WorkerId{workers - 1};
}

TEST(LauncherDeathTest, WorkersThatEndDuringTheLaunchDelayNoOther) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const test::TempFolder temp;
  const RunFolder folder(temp.path());
  folder.create();
  // in a separate process: a deadlock ends with the alarm
  EXPECT_EXIT(
    {
      ::alarm(30);
      bool told = true;
      for (int i = 0; i < 5; ++i)
        told = all_ends_are_told(folder, 64) && told;
      std::_Exit(told ? 0 : 1);
    },
    ::testing::ExitedWithCode(0), "");
}

/// Workers that write how they were started and what they read, and end with
/// code 7.
class Spares : public ::testing::Test {
protected:
  Spares() {
    folder_.create();
    std::ofstream(spec_.program)
      << "#!/bin/sh\n[ \"$2\" = --spare ] || exec echo fresh\n"
         "words=$(tr '\\n' ' ')\n[ \"$words\" ] || exit 0\n"
         "echo spare $words\nexit 7\n";
    std::filesystem::permissions(spec_.program,
                                 std::filesystem::perms::owner_all);
  }

  void start() {
    launcher_.start(spec_, [this](WorkerId worker, const net::ChildExit& exit) {
      const std::lock_guard lock{mutex_};
      codes_[worker] = exit.code;
    });
    launcher_.end_all(10s);
  }
  std::string log(std::uint32_t worker) const {
    std::ifstream file(folder_.worker_log(WorkerId{worker}));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const test::TempFolder temp_;
  const RunFolder folder_{temp_.path()};
  const LaunchSpec spec_
    = spec_of(folder_, (temp_.path() / "program").string(), 2);
  std::mutex mutex_;
  std::map<WorkerId, int> codes_;
  Launcher launcher_;
};

TEST_F(Spares, BecomeWorkersOnceTheyAreTold) {
  launcher_.start_spares(spec_, 1);
  EXPECT_EQ(log(0), "");
  start();
  EXPECT_EQ(log(0), "spare --join 127.0.0.1:1 --token-file no_token --number 0 "
                    "--threads 1 --bind auto --ports auto\n");
  EXPECT_EQ(log(1), "fresh\n") << "there is one spare";
  EXPECT_THAT(codes_, ElementsAre(Pair(WorkerId{0}, 7), Pair(WorkerId{1}, 0)));
}

TEST_F(Spares, OfAnotherCommandAreNotUsedAndTheirEndIsNoWorkers) {
  auto other = spec_;
  other.program = (temp_.path() / "other").string();
  std::filesystem::copy_file(spec_.program, other.program);
  launcher_.start_spares(other, 2);
  start();
  EXPECT_EQ(log(0), "fresh\n");
  EXPECT_EQ(log(1), "fresh\n");
  EXPECT_THAT(codes_, ElementsAre(Pair(WorkerId{0}, 0), Pair(WorkerId{1}, 0)));
}

TEST_F(Spares, OneThatHasEndedIsStartedAsIfThereWereNone) {
  launcher_.start_spares(spec_, 2);
  launcher_.kill_all();
  launcher_.end_all(10s);
  start();
  EXPECT_EQ(log(0), "fresh\n");
  EXPECT_THAT(codes_, ElementsAre(Pair(WorkerId{0}, 0), Pair(WorkerId{1}, 0)));
}

TEST_F(Spares, OneThatHasEndedIsNotUsedWhileAProcessOfItsHasTheInput) {
  // the shell ends once its child is in a session of its own
  std::ofstream(spec_.program)
    << "#!/bin/sh\n[ \"$2\" = --spare ] || exec echo fresh\n"
       "exec 3<&0\nlast=$(setsid sh -c 'exec >&-; read word <&3' &)\n";
  launcher_.start_spares(spec_, 2);
  launcher_.end_all(10s);
  start();
  EXPECT_EQ(log(0), "fresh\n");
  EXPECT_THAT(codes_, ElementsAre(Pair(WorkerId{0}, 0), Pair(WorkerId{1}, 0)));
}

/// Spares that keep a pipe open while they live, so that its end is theirs.
class LivingSpares : public Spares {
protected:
  LivingSpares() {
    ::mkfifo(pipe_.c_str(), 0600);
    std::ofstream(spec_.program) << "#!/bin/sh\nexec 3>" << pipe_.string()
                                 << "\necho up >&3\nread -r word\n";
  }
  void start_two(Launcher& launcher) {
    launcher.start_spares(spec_, 2);
    alive_.open(pipe_); // waits for the first
    std::string line;
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(std::getline(alive_, line));
  }
  /// Waits for their ends.
  void expect_gone() {
    std::string line;
    EXPECT_FALSE(std::getline(alive_, line)) << line;
  }

private:
  const std::filesystem::path pipe_ = temp_.path() / "pipe";
  std::ifstream alive_;
};

TEST_F(LivingSpares, EndWithTheLauncher) {
  {
    Launcher other;
    start_two(other);
  }
  expect_gone();
}

TEST_F(LivingSpares, OfALargerPlanEndWhenTheWorkersStart) {
  start_two(launcher_);
  launcher_.start(spec_of(folder_, spec_.program, 1), {});
  expect_gone();
}

} // namespace
} // namespace troupe::runtime
