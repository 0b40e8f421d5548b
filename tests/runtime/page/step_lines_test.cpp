// The lines of a step in samples.jsonl, found without reading the file.
#include "runtime/page/step_lines.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::runtime {
namespace {

constexpr std::size_t plenty = 1 << 24;

class StepLines : public ::testing::Test {
protected:
  /// A file of the lines of these steps, one byte longer each.
  std::string written(const std::vector<std::uint32_t>& steps,
                      std::size_t longest) {
    std::string text;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      lines_.push_back("{\"step\":" + std::to_string(steps[i]) + ",\"text\":\""
                       + std::string(i * 7919 % longest, 'x') + "\"}\n");
      text += lines_.back();
    }
    test::write_text(file_, text);
    return text;
  }

  /// Those of the lines that are of the step, found one after the other.
  std::string lines_with(const std::vector<std::uint32_t>& steps,
                         std::uint32_t step) const {
    std::string found;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (steps[i] == step)
        found += lines_[i];
    return found;
  }

  test::TempFolder temp_;
  std::filesystem::path file_ = temp_.path() / "samples.jsonl";
  std::vector<std::string> lines_;
};

TEST_F(StepLines, AreThoseThatAReaderOfTheWholeFileFinds) {
  for (const std::size_t longest : {1, 200, 90'000}) {
    lines_.clear();
    std::vector<std::uint32_t> steps;
    for (std::uint32_t step = 1; step <= 120; ++step)
      if (step % 5 != 0) // 4 lines, none in each fifth step
        steps.insert(steps.end(), 4, step);
    written(steps, longest);
    for (std::uint32_t step = 0; step <= 121; ++step) {
      EXPECT_EQ(lines_of_step(file_, step, plenty), lines_with(steps, step))
        << step << ", lines of up to " << longest;
    }
  }
}

TEST_F(StepLines, EndAtTheLimitAndBeforeALineThatIsBeingWritten) {
  const auto text = written({1, 2, 2, 2, 3}, 1);
  const auto one = lines_[1].size();
  EXPECT_EQ(lines_of_step(file_, 2, one + 1), lines_[1] + lines_[2]);
  test::write_text(file_, text.substr(0, text.size() - 1));
  EXPECT_EQ(lines_of_step(file_, 3, plenty), "");
  EXPECT_EQ(lines_of_step(temp_.path() / "none", 3, plenty), "");
}

TEST_F(StepLines, OfOtherFormsBelongToNoStep) {
  EXPECT_EQ(step_of_line("{\"step\":12,"), 12U);
  EXPECT_EQ(step_of_line("{\"step\": 12}"), 12U);
  for (const std::string line : {"", "{", "{\"step\":", "{\"step\":-1,", "[1]",
                                 "{\"step\":99999999999,", "{\"step\":1"})
    EXPECT_EQ(step_of_line(line), std::nullopt) << line;
}

} // namespace
} // namespace troupe::runtime
