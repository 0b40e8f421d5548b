#include "config/base/error.hpp"
#include "runtime/base/lines_backward.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

#include <vector>

namespace troupe::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LinesBackwardTest : public ::testing::Test {
protected:
  /// Returns "BEGIN:TEXT" of each line, with "~" after one without its end.
  std::vector<std::string> lines_of(const std::string& text) {
    test::write_text(file_, text);
    LinesBackward lines(file_);
    std::vector<std::string> found;
    while (const auto line = lines.next())
      found.push_back(std::to_string(line->begin) + ":"
                      + std::string(line->text) + (line->whole ? "" : "~"));
    EXPECT_FALSE(lines.next()) << "and nothing more";
    return found;
  }

  const test::TempFolder temp_;
  const std::filesystem::path file_ = temp_.path() / "lines";
};

TEST_F(LinesBackwardTest, LinesComeFromTheLastToTheFirst) {
  EXPECT_THAT(lines_of("one\ntwo\n\nthree\n"),
              ElementsAre("9:three", "8:", "4:two", "0:one"));
  EXPECT_THAT(lines_of("\n"), ElementsAre("0:"));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

TEST_F(LinesBackwardTest, ALastLineWithoutANewlineIsPartial) {
  EXPECT_THAT(lines_of("one\ntw"), ElementsAre("4:tw~", "0:one"));
  EXPECT_THAT(lines_of("o"), ElementsAre("0:o~"));
}

TEST_F(LinesBackwardTest, LinesMayBeLongerThanABlock) {
  const std::string a(300'000, 'a');
  const std::string b(65'535, 'b'); // ends where a read does
  EXPECT_THAT(lines_of("x\n" + a + "\n" + b + "\n"),
              ElementsAre("300003:" + b, "2:" + a, "0:x"));
}

TEST_F(LinesBackwardTest, AMissingFileIsNamed) {
  EXPECT_THROW(LinesBackward(temp_.path() / "absent"), FailureError);
}

} // namespace
} // namespace troupe::runtime
