// What a watcher gets of a file of lines: each line once and whole, and of a
// long file only its end.
#include "runtime/live/line_follower.hpp"

#include <gtest/gtest.h>

#include "tests/support/runtime/temp_folder.hpp"

using troupe::runtime::LineFollower;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

constexpr std::size_t plenty = std::size_t{1} << 20;

class LineFollowing : public ::testing::Test {
protected:
  void append(const std::string& text) const {
    std::ofstream(file_, std::ios::app) << text;
  }

  TempFolder temp_;
  std::filesystem::path file_ = temp_.path() / "lines";
};

TEST_F(LineFollowing, ALineOnItsWayIsGivenOnceItEnds) {
  append("one\ntw");
  LineFollower follower(file_, plenty);
  EXPECT_EQ(follower.read(plenty), "one\n");
  EXPECT_EQ(follower.read(plenty), "");
  append("o\nthree\n");
  EXPECT_EQ(follower.read(plenty), "two\nthree\n");
}

TEST_F(LineFollowing, OfALongFileTheLinesOfItsEndAreGiven) {
  append("one\ntwo\nthree\n");
  EXPECT_EQ(LineFollower(file_, 7).read(plenty), "three\n");
  EXPECT_EQ(LineFollower(file_, 6).read(plenty), "three\n"); // just that line
  EXPECT_EQ(LineFollower(file_, 14).read(plenty), "one\ntwo\nthree\n");
}

TEST_F(LineFollowing, ALongFileComesInPortionsOfWholeLines) {
  const std::string line(99'999, 'x');
  for (int i = 0; i < 20; ++i)
    append(line + "\n");
  LineFollower follower(file_, 2 * plenty);
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
