#include "models/records/row_file.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <cstring>
#include <limits>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;

class RowFile : public ::testing::Test {
protected:
  support::TempFolder folder_;
  std::filesystem::path path_ = folder_ / "rows.safetensors";
};

TEST_F(RowFile, RowsOfSeveralStepsReadBackToTheBit_I8) {
  const std::int32_t ids[] = {5, 6, 7, 8};
  const float odd[] = {std::numeric_limits<float>::denorm_min(), -0.0F,
                       -std::numeric_limits<float>::infinity()};
  const net::Rows first{
    {SampleId{2}, SampleId{0}},
    {net::make_column("sequence_ids", DType::i32, {3, 1}, ids),
     net::make_column("logprobs", DType::f32, {3, 0}, odd)}};
  const net::Rows second{{SampleId{1}},
                         {net::make_column("truncated", DType::u8, {0})}};
  const std::vector<StepRows> all
    = {{StepId{7}, first}, {StepId{8}, second}, {StepId{8}, first}};
  EXPECT_EQ(write_row_file(path_, all), 2 * first.size_bytes());
  const auto read = read_row_file(path_);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].step, StepId{7});
  EXPECT_EQ(read[1].step, StepId{8});
  EXPECT_THAT(read[0].rows.samples, ElementsAre(SampleId{2}, SampleId{0}));
  EXPECT_THAT(read[0].rows.at("sequence_ids").lengths, ElementsAre(3, 1));
  EXPECT_THAT(read[0].rows.at("sequence_ids").as<std::int32_t>(),
              ElementsAre(5, 6, 7, 8));
  const auto back = read[2].rows.at("logprobs").as<float>();
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(std::memcmp(back.data(), odd, sizeof odd), 0);
  EXPECT_EQ(read[1].rows.at("truncated").dtype, DType::u8);
}

TEST_F(RowFile, AFileMayHaveNoRows) {
  EXPECT_EQ(write_row_file(path_, {}), 0u);
  EXPECT_TRUE(read_row_file(path_).empty());
}

} // namespace
} // namespace troupe::models
