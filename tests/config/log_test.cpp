#include "config/error.hpp"
#include "config/log.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
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

TEST(Log, WarningsAlsoGoToStderr) {
  testing::internal::CaptureStderr();
  log::models.info("quiet");
  log::models.warn("new scalar head");
  log::flush();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: models: new scalar head\n");
}

TEST(Log, AConsoleThatIsALogTellsTheTime) {
  // in a process of its own: the console keeps its form
  EXPECT_EXIT(
    {
      log::stamp_console();
      log::models.warn("new scalar head");
      std::_Exit(0);
    },
    ::testing::ExitedWithCode(0),
    "^[0-9-]{10} [0-9:]{8}\\.[0-9]{3} warning models: new scalar head\n");
}

TEST(Log, UnwritableFileIsAFailure) {
  EXPECT_THROW(log::open("/proc/none/log.txt", log::Level::info),
               troupe::FailureError);
}

} // namespace
