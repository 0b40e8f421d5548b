#include "runtime/run_folder/crash_report.hpp"

#include <gtest/gtest.h>

#include "troupe/detail/crash_context.hpp"

#include <sstream>

namespace {

TEST(CrashReport, NamesTheTaskAndTheLogTail) {
  std::istringstream log(
    "2026-01-02 03:04:05.678 info runtime: joined\n"
    "an assertion of mine\n"
    + std::string(troupe::crash_prefix)
    + "user-defined actor checker with sample 3 of step 1\n"
      "2026-01-02 03:04:05.678 warning net: closed\n");
  const auto words = troupe::runtime::crash_report_of(log);
  EXPECT_EQ(words.work,
            " in user-defined actor checker with sample 3 of step 1");
  EXPECT_EQ(words.said, "an assertion of mine");
}

} // namespace
