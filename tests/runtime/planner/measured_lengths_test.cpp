#include "config/base/error.hpp"
#include "runtime/planner/measured_lengths.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

#include <fstream>

namespace troupe::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MeasuredLengths : public ::testing::Test {
protected:
  std::filesystem::path file(const std::string& name, const std::string& text) {
    std::ofstream(temp_.path() / name) << text;
    return temp_.path() / name;
  }
  std::string refusal(const std::filesystem::path& from) {
    try {
      read_response_lengths(from);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  test::TempFolder temp_;
};

TEST_F(MeasuredLengths, ARunHasThoseOfItsSamples) {
  file("samples.jsonl", "{\"step\":1,\"loss_mask\":[0,0,1,1,1]}\n"
                        "{\"step\":1,\"loss_mask\":[0,1,0,1]}\n");
  EXPECT_THAT(read_response_lengths(temp_.path()), ElementsAre(3, 2));
  EXPECT_THAT(read_response_lengths(temp_.path() / "samples.jsonl"),
              ElementsAre(3, 2));
}

TEST_F(MeasuredLengths, AFileHasANumberPerLine) {
  EXPECT_THAT(read_response_lengths(file("lengths.txt", "12\n700\n\n3.5\n")),
              ElementsAre(12, 700, 3.5));
}

TEST_F(MeasuredLengths, WhatIsNoLengthIsNamedByItsLine) {
  EXPECT_THAT(refusal(file("a", "12\nlong\n")), HasSubstr("a:2: "));
  EXPECT_THAT(refusal(file("b", "{\"step\":1}\n")), HasSubstr("b:1: "));
  EXPECT_THAT(refusal(file("c", "{broken\n")), HasSubstr("c:1: "));
  EXPECT_THAT(refusal(file("d", "-4\n")), HasSubstr("d:1: "));
  EXPECT_THAT(refusal(file("e", "\n")), HasSubstr("got none"));
  EXPECT_THAT(refusal(temp_.path() / "absent"), HasSubstr("no readable file"));
}

} // namespace
} // namespace troupe::runtime
