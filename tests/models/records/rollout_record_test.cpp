#include "models/records/rollout_record.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

template <class T>
net::Column of_one_sample(const char* key, DType dtype,
                          const std::vector<T>& values) {
  return net::make_column(
    key, dtype, {static_cast<std::uint32_t>(values.size())}, values.data());
}

std::vector<net::Column> response() {
  std::vector<net::Column> columns;
  columns.push_back(
    of_one_sample<std::int32_t>("sequence_ids", DType::i32, {10, 11, 12}));
  columns.push_back(
    of_one_sample<std::uint8_t>("loss_mask", DType::u8, {0, 1, 1}));
  columns.push_back(
    of_one_sample<float>("logprobs", DType::f32, {0, -0.123456F, -1}));
  columns.push_back(of_one_sample<std::uint8_t>("truncated", DType::u8, {1}));
  return columns;
}

nlohmann::json line_of(std::vector<net::Column> columns,
                       const std::vector<plans::VersionSpan>& versions = {}) {
  const net::Rows rows{{SampleId{5}}, std::move(columns)};
  return nlohmann::json::parse(
    sample_lines(StepId{0}, rows, {}, testing::letters(), versions));
}

TEST(RolloutRecord, SampledLogprobsReadBackToTheBitForAReplay) {
  const auto line = line_of(response());
  EXPECT_EQ(line["step"], 1);
  EXPECT_EQ(line["sample"], 5);
  EXPECT_EQ(line["logprobs"][1].get<float>(), -0.123456F);
  EXPECT_FALSE(line.contains("kl"));
  EXPECT_FALSE(line.contains("ref_logprobs"));
  EXPECT_FALSE(line.contains("advantages"));
}

TEST(RolloutRecord, KlIsOfTheModelsOwnTokensAndSoAreItsParts) {
  auto columns = response();
  columns.push_back(
    of_one_sample<float>("ref_logprobs", DType::f32, {-7, -0.5F, -0.25F}));
  columns.push_back(
    of_one_sample<float>("advantages", DType::f32, {0, 1.23456F, -2}));
  const auto line = line_of(std::move(columns));
  EXPECT_NEAR(line["kl"], (-0.123456 + 0.5) + (-1 + 0.25), 1e-6);
  EXPECT_THAT(line["ref_logprobs"].get<std::vector<double>>(),
              ElementsAre(DoubleEq(-7), DoubleEq(-0.5), DoubleEq(-0.25)));
  EXPECT_THAT(line["advantages"].get<std::vector<double>>(),
              ElementsAre(DoubleEq(0), DoubleEq(1.2346), DoubleEq(-2)));
}

TEST(RolloutRecord, VersionsBeginAtTokensThatTheResponseHas) {
  EXPECT_FALSE(line_of(response()).contains("versions"));
  const auto line
    = line_of(response(), {{0, Version{3}}, {1, Version{4}}, {2, Version{5}}});
  EXPECT_EQ(line["versions"], nlohmann::json::parse("[[1, 3], [2, 4]]"));
}

} // namespace
} // namespace troupe::models
