// Worker processes as the launcher sees them start and end.
#include "runtime/launch/launcher.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;

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
  Launcher launcher([&](WorkerId worker, const net::ChildExit& exit) {
    const std::lock_guard lock{mutex};
    if (exit.code == 1)
      ended.insert(worker);
  });
  launcher.start(spec_of(folder, "false", workers));
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

} // namespace
} // namespace troupe::runtime
