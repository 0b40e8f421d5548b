#include "config/base/error.hpp"
#include "runtime/run_folder/longest_sample.hpp"

#include <gtest/gtest.h>

#include "tests/support/runtime/temp_folder.hpp"

using namespace troupe;
using namespace troupe::runtime;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

constexpr auto two_steps = R"({"step":1,"sample":0,"loss_mask":[0,1,1,1,1]}
{"step":2,"sample":0,"loss_mask":[0,0,1]}
{"step":2,"sample":1,"loss_mask":[0,1,1]}
{"step":2,"sample":2,"loss_mask":[1,0,1]}
{"step":3,"sample":0,"loss_m)";

TEST(LongestSample, IsTheFirstLongestOfTheLastCompleteStep) {
  const TempFolder folder;
  const auto file = folder.path() / "samples.jsonl";
  write_text(file, two_steps);
  EXPECT_EQ(longest_sample(file), "step 2 sample 1, 2 tokens");
}

TEST(LongestSample, IsEmptyWithoutSamples) {
  const TempFolder folder;
  EXPECT_EQ(longest_sample(folder.path() / "samples.jsonl"), "");
  write_text(folder.path() / "samples.jsonl", "");
  EXPECT_EQ(longest_sample(folder.path() / "samples.jsonl"), "");
}

TEST(LongestSample, NamesAFileThatHoldsNoSamples) {
  const TempFolder folder;
  write_text(folder.path() / "samples.jsonl", "{\"step\": 1}\n");
  EXPECT_THROW(longest_sample(folder.path() / "samples.jsonl"), ConfigError);
}

} // namespace
