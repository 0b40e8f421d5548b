#include "config/error.hpp"
#include "runtime/jsonl_file.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;
using troupe::test::read_text;
using troupe::test::TempFolder;
using troupe::test::write_text;

TEST(JsonlFile, AppendsWholeLinesAfterWhatIsThere) {
  const TempFolder temp;
  const auto path = temp.path() / "x.jsonl";
  JsonlFile(path).append("{\"step\":1}");
  JsonlFile(path).append("{\"step\":2}");
  EXPECT_EQ(read_text(path), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(JsonlFile, CutBackDropsLaterStepsAndHalfLines) {
  const TempFolder temp;
  const auto path = temp.path() / "x.jsonl";
  write_text(path, "{\"step\":19}\n{\"step\":20}\n{\"step\":21}\n{\"st");
  EXPECT_EQ(cut_back(path, 20), 2u);
  EXPECT_EQ(read_text(path), "{\"step\":19}\n{\"step\":20}\n");
  EXPECT_EQ(cut_back(path, 20), 0u);
  EXPECT_EQ(cut_back(temp.path() / "absent", 20), 0u);
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

TEST(ReplaceFile, LeavesNothingElseBehind) {
  const TempFolder temp;
  replace_file(temp.path() / "a", "one");
  replace_file(temp.path() / "a", "two");
  EXPECT_EQ(read_text(temp.path() / "a"), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(temp.path()),
                          std::filesystem::directory_iterator()),
            1);
  EXPECT_THROW(replace_file(temp.path() / "no" / "a", "x"), FailureError);
}
