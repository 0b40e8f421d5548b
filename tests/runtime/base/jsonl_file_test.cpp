#include "config/base/error.hpp"
#include "runtime/base/jsonl_file.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <fstream>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;
using troupe::test::read_text;
using troupe::test::TempFolder;
using troupe::test::write_text;

TEST(JsonlFile, AppendsWholeLinesAfterExistingOnes) {
  const TempFolder temp;
  const auto path = temp.path() / "x.jsonl";
  JsonlFile(path).append("{\"step\":1}");
  JsonlFile(path).append("{\"step\":2}");
  EXPECT_EQ(read_text(path), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(JsonlFile, TruncationDropsLaterStepsAndPartialLines) {
  const TempFolder temp;
  const auto path = temp.path() / "x.jsonl";
  write_text(path, "{\"step\":19}\n{\"step\":20}\n{\"step\":21}\n{\"st");
  EXPECT_EQ(cut_back(path, 20), 2u);
  EXPECT_EQ(read_text(path), "{\"step\":19}\n{\"step\":20}\n");
  EXPECT_EQ(cut_back(path, 20), 0u);
  EXPECT_EQ(cut_back(temp.path() / "absent", 20), 0u);
}

TEST(JsonlFile, WhatIsAppendedToAReplacedFileReachesNobody) {
  const TempFolder temp;
  const auto path = temp.path() / "x.jsonl";
  JsonlFile stale(path);
  stale.append("{\"step\":1}");
  replace_by_copy(path);
  stale.append("{\"step\":2}");
  EXPECT_EQ(read_text(path), "{\"step\":1}\n");
  replace_by_copy(temp.path() / "absent");
}

TEST(JsonlFile, TruncationKeepsEarlierStepsThatWereWrittenLate) {
  const TempFolder temp;
  const auto path = temp.path() / "x.jsonl";
  write_text(path, "{\"step\":19}\n{\"step\":21,\"a\":1}\n{\"step\":20}\n"
                   "{\"step\":22}\n{\"step\":20,\"b\":{\"step\":99}}\n"
                   "{\"keys\":[{\"step\":1}],\"step\":23}\nno JSON\n");
  EXPECT_EQ(cut_back(path, 20), 4u);
  EXPECT_EQ(read_text(path), "{\"step\":19}\n{\"step\":20}\n"
                             "{\"step\":20,\"b\":{\"step\":99}}\n");
}

TEST(JsonlFile, TruncationOfALongFileReadsOnlyItsEnd) {
  const TempFolder temp;
  const auto path = temp.path() / "samples.jsonl";
  constexpr std::uint64_t before = std::uint64_t{1} << 30;
  { // a hole takes no disk space, but a reader gets all of its bytes
    std::ofstream file(path);
    file.seekp(before - 1);
    const std::string tokens(30'000, '7');
    for (int step = 1; step <= 40; ++step)
      file << "\n{\"step\":" << step << ",\"tokens\":\"" << tokens << "\"}";
    file << "\n";
  }
  const auto size = std::filesystem::file_size(path);
  const auto memory_kb = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
  };
  const auto memory_before = memory_kb();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(cut_back(path, 30), 10u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_LT(memory_kb() - memory_before, 50'000);
  const auto line_bytes = (size - before) / 40;
  EXPECT_NEAR(double(std::filesystem::file_size(path)),
              double(size - 10 * line_bytes), 100);
  EXPECT_EQ(cut_back(path, 30), 0u);
}

TEST(JsonlFile, AFullDiskIsAFailureThatNamesTheFile) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full here";
  JsonlFile full("/dev/full");
  try {
    full.append("{}");
    FAIL() << "expected a failure";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::io);
    EXPECT_THAT(error.failure().what, HasSubstr("/dev/full"));
    EXPECT_THAT(error.failure().what, HasSubstr("No space left"));
  }
}

TEST(ReplaceFile, LeavesNoOtherFile) {
  const TempFolder temp;
  replace_file(temp.path() / "a", "one");
  replace_file(temp.path() / "a", "two");
  EXPECT_EQ(read_text(temp.path() / "a"), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(temp.path()),
                          std::filesystem::directory_iterator()),
            1);
  EXPECT_THROW(replace_file(temp.path() / "no" / "a", "x"), FailureError);
}
