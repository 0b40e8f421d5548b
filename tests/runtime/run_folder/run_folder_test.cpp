#include "config/base/error.hpp"
#include "runtime/run_folder/failure_log.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/run_status.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace fs = std::filesystem;
using namespace troupe;
using namespace troupe::runtime;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::test::read_text;
using troupe::test::TempFolder;
using troupe::test::write_text;

TEST(RunFolder, ItsFilesHaveTheDocumentedNames) {
  const RunFolder folder("runs/tiny");
  EXPECT_EQ(folder.name(), "tiny");
  EXPECT_EQ(folder.checkpoint(20), "runs/tiny/checkpoints/step_000020");
  EXPECT_EQ(folder.worker_log(WorkerId{3}), "runs/tiny/logs/worker_03.log");
  EXPECT_EQ(folder.attempt_folder(1), "runs/tiny/attempts/01");
  EXPECT_EQ(folder.eval_file(20), "runs/tiny/eval/step_000020.jsonl");
}

TEST(RunFolder, CountsOnlyCheckpointsWithAManifest) {
  const TempFolder temp;
  const RunFolder folder(temp.path() / "run");
  write_text(folder.checkpoint(40) / "manifest.json", "{}");
  write_text(folder.checkpoint(20) / "manifest.json", "{}");
  write_text(folder.checkpoint(60) / "actor" / "config.json", "{}");
  write_text(folder.checkpoints_folder() / ".tmp-step_80" / "manifest.json",
             "{}");
  for (const char* copy : {"step_000040_copy", "step_30", "step_backup"})
    write_text(folder.checkpoints_folder() / copy / "manifest.json", "{}");
  EXPECT_THAT(folder.checkpoints(), ElementsAre(20, 40));
}

TEST(RunFolder, AttemptsCountUp) {
  const TempFolder temp;
  const RunFolder folder(temp.path());
  EXPECT_EQ(folder.next_attempt(), 1u);
  fs::create_directories(folder.attempt_folder(1));
  fs::create_directories(folder.attempt_folder(9));
  EXPECT_EQ(folder.next_attempt(), 10u);
}

TEST(RunFolder, OldRunsKeepTheirNameWithANumber) {
  const TempFolder temp;
  const RunFolder folder(temp.path() / "tiny");
  write_text(folder.config_file(), "one");
  EXPECT_EQ(folder.rename_old(), temp.path() / "tiny.1");
  write_text(folder.config_file(), "two");
  EXPECT_EQ(folder.rename_old(), temp.path() / "tiny.2");
  EXPECT_EQ(read_text(temp.path() / "tiny.1" / "config.yaml"), "one");
  EXPECT_FALSE(folder.exists());
}

TEST(RunFolder, AFileOfItsNameIsAUserError) {
  const TempFolder temp;
  write_text(temp.path() / "runs", "not a folder");
  const RunFolder folder(temp.path() / "runs" / "tiny");
  EXPECT_THROW(folder.check_writable(), ConfigError);
  EXPECT_THROW(folder.create(), ConfigError);
}

TEST(RunFolder, CheckingCreatesNothing) {
  const TempFolder temp;
  const RunFolder folder(temp.path() / "a" / "b");
  folder.check_writable();
  EXPECT_FALSE(fs::exists(temp.path() / "a"));
}

TEST(RunLock, WhoAsksForAMasterKeepsNoneFromStarting) {
  const TempFolder temp;
  const RunFolder folder(temp.path());
  std::atomic<bool> over{false};
  std::thread reader([&] {
    while (!over)
      is_active(folder);
  });
  for (int i = 0; i < 5000; ++i)
    EXPECT_NO_THROW(RunLock{folder});
  over = true;
  reader.join();
}

TEST(RunLock, AllowsOneMasterAtATime) {
  const TempFolder temp;
  const RunFolder folder(temp.path());
  EXPECT_FALSE(is_active(folder));
  {
    const RunLock lock(folder);
    EXPECT_TRUE(is_active(folder));
    EXPECT_THROW(RunLock{folder}, ConfigError);
  }
  EXPECT_FALSE(is_active(folder));
  wait_until_idle(folder);
}

TEST(RunStatus, ReadsBackWhatWasWritten) {
  const TempFolder temp;
  const RunFolder folder(temp.path());
  RunStatus status;
  status.state = "running";
  status.step = 12;
  status.steps = 60;
  status.eta_s = 30.5;
  status.pid = 4711;
  status.host = "here";
  status.workers = {{0, "here", 4712, "ready"}};
  status.devices = {{1, {.peak_bytes = 12'000'000, .at_task = "actor_train"}}};
  write_status(folder, status);
  const auto read = read_status(folder);
  EXPECT_EQ(read.state, "running");
  EXPECT_EQ(read.step, 12u);
  EXPECT_EQ(read.steps, 60u);
  EXPECT_EQ(read.eta_s, 30.5);
  EXPECT_EQ(read.pid, 4711);
  EXPECT_EQ(read.workers.at(0).pid, 4712);
  EXPECT_EQ(read.devices.at(0).device, 1u);
  EXPECT_EQ(read.devices.at(0).peak.peak_bytes, 12'000'000u);
  EXPECT_EQ(read.last_failure, "");
  EXPECT_THAT(status_json(read), HasSubstr("\"last_failure\": null"));
  EXPECT_THAT(status_text(folder, read), HasSubstr("step 12 of 60"));
  EXPECT_THAT(status_text(folder, read),
              HasSubstr("device 1    peak memory 12.0 MB in actor_train"));
}

TEST(RunStatus, AFolderWithoutAStatusIsAUserError) {
  const TempFolder temp;
  EXPECT_THROW(read_status(RunFolder(temp.path())), ConfigError);
  write_text(temp.path() / "status.json", "{\"state\": 3}");
  EXPECT_THROW(read_status(RunFolder(temp.path())), ConfigError);
}

TEST(Failures, AreLinesWithTheDocumentedFields) {
  const TempFolder temp;
  const RunFolder folder(temp.path());
  append_failure(folder, {.attempt = 2,
                          .who = "worker 1 (pid 4711)",
                          .host = "here",
                          .when = "step 12, actor_train",
                          .code = Errc::peer_lost,
                          .what = "connection closed",
                          .cause = "killed by signal 9",
                          .action = "stopped the run"});
  const auto text = read_text(folder.failures_file());
  for (const char* field : {"time", "attempt", "who", "host", "when", "code",
                            "what", "cause", "action"})
    EXPECT_THAT(text, HasSubstr("\"" + std::string(field) + "\":"));
}

TEST(Failures, ARecoveryIsALineOnceItsCostIsKnown) {
  const TempFolder temp;
  const RunFolder folder(temp.path());
  FailureLog failures(folder);
  const auto now = std::chrono::steady_clock::now();
  failures.end_recovery(now);
  failures.begin_recovery({.who = "worker 1",
                           .action = "rolled_back",
                           .cost = RecoveryCost{.lost_steps = 2}},
                          now);
  EXPECT_FALSE(std::filesystem::exists(folder.failures_file()));
  failures.end_recovery(now + std::chrono::seconds(3));
  failures.end_recovery(now + std::chrono::seconds(9));
  const auto text = read_text(folder.failures_file());
  EXPECT_THAT(text, HasSubstr(R"("action":"rolled_back","lost_steps":2,)"
                              R"("seconds":3.0)"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
}

TEST(FailureLog, NamesTheNodeThatItWaitsForNow) {
  const TempFolder temp;
  const RunFolder folder(temp.path());
  folder.create();
  FailureLog failures(folder);
  const auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(failures.waits_for("node 1"));
  failures.begin_wait({.action = "waiting"}, "node 1", now);
  EXPECT_TRUE(failures.waits_for("node 1"));
  EXPECT_FALSE(failures.waits_for("node 2"));
  failures.begin_wait({.action = "waiting"}, "node 2", now);
  const auto waited = failures.end_wait(now + std::chrono::seconds(3));
  EXPECT_EQ(waited->first, "node 2");
  EXPECT_EQ(waited->second.count(), 3.0);
  EXPECT_FALSE(failures.waits_for("node 2"));
}
