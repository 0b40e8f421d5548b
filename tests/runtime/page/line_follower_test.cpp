// A watcher of a file of lines gets each line once and whole, and only the end
// of a long file.
#include "runtime/base/jsonl_file.hpp"
#include "runtime/page/line_follower.hpp"

#include <gtest/gtest.h>

#include "tests/support/runtime/temp_folder.hpp"

using troupe::runtime::LineFollower;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

constexpr std::size_t enough_bytes = std::size_t{1} << 20;

class LineFollowerTest : public ::testing::Test {
protected:
  void append(const std::string& text) const {
    std::ofstream(file_, std::ios::app) << text;
  }

  TempFolder temp_;
  std::filesystem::path file_ = temp_.path() / "lines";
};

TEST_F(LineFollowerTest, AFileThatIsCutBackIsFollowedFromTheCut) {
  append("one\ntwo\nthr");
  LineFollower follower(file_, enough_bytes);
  EXPECT_EQ(follower.read(enough_bytes), "one\ntwo\n");
  std::filesystem::resize_file(file_, 4);
  EXPECT_EQ(follower.read(enough_bytes), "");
  append("two again\n");
  EXPECT_EQ(follower.read(enough_bytes), "two again\n");
}

TEST_F(LineFollowerTest, APartialLineIsReturnedOnceItEnds) {
  append("one\ntw");
  LineFollower follower(file_, enough_bytes);
  EXPECT_EQ(follower.read(enough_bytes), "one\n");
  EXPECT_EQ(follower.read(enough_bytes), "");
  append("o\nthree\n");
  EXPECT_EQ(follower.read(enough_bytes), "two\nthree\n");
}

TEST_F(LineFollowerTest, AFileThatReplacesItIsFollowedFromTheSamePlace) {
  append("one\ntwo\n");
  LineFollower follower(file_, enough_bytes);
  EXPECT_EQ(follower.read(enough_bytes), "one\ntwo\n");
  troupe::runtime::replace_by_copy(file_);
  append("three\n");
  EXPECT_EQ(follower.read(enough_bytes), "three\n");
}

TEST_F(LineFollowerTest, OnlyTheLastLinesOfALongFileAreReturned) {
  append("one\ntwo\nthree\n");
  EXPECT_EQ(LineFollower(file_, 7).read(enough_bytes), "three\n");
  EXPECT_EQ(LineFollower(file_, 6).read(enough_bytes),
            "three\n"); // exactly that line
  EXPECT_EQ(LineFollower(file_, 14).read(enough_bytes), "one\ntwo\nthree\n");
}

TEST_F(LineFollowerTest, ALongFileIsReadInPortionsOfWholeLines) {
  const std::string line(99'999, 'x');
  for (int i = 0; i < 20; ++i)
    append(line + "\n");
  LineFollower follower(file_, 2 * enough_bytes);
  std::size_t bytes = 0;
  int portions = 0;
  for (auto text = follower.read(line.size()); !text.empty();
       text = follower.read(line.size())) {
    EXPECT_TRUE(text.ends_with("x\n"));
    bytes += text.size();
    ++portions;
  }
  EXPECT_EQ(bytes, 20 * (line.size() + 1));
  EXPECT_GE(portions, 10);
}

} // namespace
