#include "config/base/error.hpp"
#include "config/base/log.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

namespace log = troupe::log;

TEST(Log, FileHoldsLevelComponentAndText) {
  const troupe::support::TempFolder folder;
  const auto file = folder / "log.txt";
  log::open(file, log::Level::info);
  log::net.debug("too small to see");
  log::net.info("port 4711");
  log::actors.info("{} is not a format");
  log::flush();
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_THAT(text.str(), ::testing::HasSubstr(" info net: port 4711\n"));
  EXPECT_THAT(text.str(), ::testing::HasSubstr("actors: {} is not a format\n"));
  EXPECT_THAT(text.str(), ::testing::Not(::testing::HasSubstr("too small")));
}

TEST(Log, StrangersCauseTenWarningsAMinute) {
  log::WarningLimit limit;
  log::WarningLimit::Time now{};
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(limit.allow(now), 0U);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(limit.allow(now + std::chrono::seconds{59}), std::nullopt);
  now += std::chrono::minutes{1};
  EXPECT_EQ(limit.allow(now), 1000U);
  EXPECT_EQ(limit.allow(now), 0U);
}

TEST(Log, ALargeLogIsRenamedBeforeTheNextLine) {
  const troupe::support::TempFolder folder;
  const auto file = folder / "log.txt";
  std::ofstream(file) << "first";
  log::renew_log(file);
  EXPECT_TRUE(std::filesystem::exists(file)) << "it is small";
  std::filesystem::resize_file(file, log::max_log_bytes + 1); // sparse
  log::renew_log(file);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(std::filesystem::file_size(folder / "log.txt.1"),
            log::max_log_bytes + 1);
}

TEST(Log, WarningsAlsoGoToStderr) {
  testing::internal::CaptureStderr();
  log::models.info("quiet");
  log::models.warn("new scalar head");
  log::flush();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: models: new scalar head\n");
}

TEST(Log, FileHoldsLinesFromBeforeItWasOpened) {
  // in a separate process, where no other test has opened a file
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
    {
      const troupe::support::TempFolder folder;
      log::models.warn("new scalar head");
      log::plans.warn_file("a tight fit");
      log::open(folder / "log.txt", log::Level::info);
      log::flush();
      std::cerr << "file: " << std::ifstream(folder / "log.txt").rdbuf();
      std::filesystem::remove_all(folder.path());
      std::_Exit(0);
    },
    ::testing::ExitedWithCode(0),
    "^warning: models: new scalar head\nfile: .* warning models: new scalar "
    "head\n.* warning plans: a tight fit\n$");
}

TEST(Log, AHeldConsoleWritesItsLinesWhenReleased) {
  testing::internal::CaptureStderr();
  {
    const log::HeldConsole held;
    log::models.warn("first");
    std::fputs("tables\n", stderr);
  }
  log::models.warn("second");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tables\nwarning: models: first\nwarning: models: second\n");
}

TEST(Log, AConsoleThatIsALogHasTimestamps) {
  // in a separate process: the console keeps its format
  EXPECT_EXIT(
    {
      log::stamp_console();
      log::models.warn("new scalar head");
      std::_Exit(0);
    },
    ::testing::ExitedWithCode(0),
    "^[0-9-]{10} [0-9:]{8}\\.[0-9]{3} warning models: new scalar head\n");
}

TEST(Log, LinesThatAFullDiskRefusesAreSaidToBeLostOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
    {
      log::open("/dev/full", log::Level::info);
      log::net.info("one");
      log::net.info("two");
      log::flush();
      std::exit(7);
    },
    ::testing::ExitedWithCode(7), "^warning: log: lines are lost: [^\n]*\n$");
}

TEST(Log, AnUnwritableFileIsAFailure) {
  EXPECT_THROW(log::open("/proc/none/log.txt", log::Level::info),
               troupe::FailureError);
}

} // namespace
