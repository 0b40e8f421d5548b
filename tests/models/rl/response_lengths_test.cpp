#include "config/settings/settings.hpp"
#include "models/rl/response_lengths.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::models {
namespace {

TEST(ResponseLengths, OfRowsAreThoseOfTheirMasks) {
  // a prompt of 2 with a response of 3, a prompt of 1 with a response of 1
  net::Rows rows({SampleId{4}, SampleId{9}}, {});
  const std::vector<std::uint8_t> masks = {0, 0, 1, 1, 1, 0, 1};
  const std::vector<std::uint8_t> truncated = {1, 0};
  rows.add(net::make_column("loss_mask", DType::u8, {5, 2}, masks.data()));
  rows.add(net::make_column("truncated", DType::u8, {1, 1}, truncated.data()));
  const Settings settings;
  const FunctionResult found
    = run_function("response_lengths", rows, {settings, StepId{1}, {}});
  EXPECT_EQ(found.rows.samples, rows.samples);
  EXPECT_EQ(found.sums.value("response_length/mean"), 2);
  EXPECT_EQ(found.sums.value("response_length/max"), 3);
  EXPECT_EQ(found.sums.value("response_length/min"), 1);
  EXPECT_EQ(found.sums.value("response_length/clip_ratio"), 0.5);
  EXPECT_EQ(found.sums.value("prompt_length/mean"), 1.5);
}

TEST(ResponseLengths, OfNoResponsesAreNoMetrics) {
  MetricSums sums;
  ResponseLengths{}.report(sums);
  EXPECT_TRUE(sums.empty());
}

} // namespace
} // namespace troupe::models
