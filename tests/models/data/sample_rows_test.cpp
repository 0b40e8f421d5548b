#include "config/base/error.hpp"
#include "models/data/sample_rows.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::letters;
using troupe::testing::DatasetFile;

constexpr Key<float> score{"score"};
constexpr Key<std::string> note{"note"};
constexpr Key<float, per_token> weights_key{"weights"};

TEST(SampleRows, ValuesRoundTripBitByBit) {
  std::vector<Sample> samples = {Sample(4), Sample(5)};
  const std::vector<float> some = {1.F, -0.F};
  samples[0].set(score, std::numeric_limits<float>::infinity());
  samples[0].set(note, "");
  samples[0].set(weights_key, some);
  samples[1].set(score, std::nanf(""));
  samples[1].set(note, "two words");
  samples[1].set(weights_key, {});
  const std::vector<KeyInfo> keys
    = {info(score), info(note), info(weights_key)};
  const auto rows = rows_of_samples(samples, keys, "test");
  EXPECT_EQ(rows.at("score").dtype, DType::f32);
  EXPECT_EQ(rows.at("note").lengths, (std::vector<std::uint32_t>{0, 9}));
  const auto again = samples_of_rows(rows, keys, 2, letters());
  EXPECT_TRUE(std::isinf(again[0][score]));
  EXPECT_TRUE(std::isnan(again[1][score]));
  EXPECT_TRUE(std::signbit(again[0][weights_key][1]));
  EXPECT_EQ(again[1][note], "two words");
  EXPECT_EQ(again[1].id(), 5u);
  EXPECT_EQ(again[1].group(), 2u);
}

TEST(SampleRows, AnUnsetKeyIsNamed) {
  const std::vector<Sample> samples = {Sample(3)};
  const std::vector<KeyInfo> keys = {info(score)};
  try {
    rows_of_samples(samples, keys, "checker");
    FAIL();
  } catch (const FailureError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sample 3 was returned without score"));
  }
}

TEST(SampleRows, AKeyOfAnotherTypeIsNamed) {
  const auto complaint = [](const Sample& sample, const KeyInfo& key) {
    try {
      rows_of_samples(std::vector{sample}, std::vector{key}, "checker");
    } catch (const FailureError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  Sample sample(3);
  sample.set(Key<std::int32_t>{"score"}, 1);
  EXPECT_THAT(
    complaint(sample, info(score)),
    HasSubstr("sample 3 was returned with score of another type than in "
              "writes()"));
  const std::vector<float> two = {1, 2};
  sample.set(Key<float, per_token>{"score"}, two);
  EXPECT_THAT(complaint(sample, info(score)), HasSubstr("another type"));
  EXPECT_EQ(complaint(sample, {"score", KeyType::f32, Per::token}), "accepted");
}

TEST(SampleRows, AResponseIsDecodedFromTheModelsTokens) {
  net::Rows rows;
  rows.samples = {SampleId{0}};
  const std::vector<std::int32_t> ids = {0, 10, 11, 12, 1};
  const std::vector<std::uint8_t> mask = {0, 0, 1, 1, 0};
  rows.add(net::make_column("b_sequence_ids", DType::i32, {5}, ids.data()));
  rows.add(net::make_column("b_loss_mask", DType::u8, {5}, mask.data()));
  const Key<std::string> response{"b_response"};
  const std::vector<KeyInfo> keys = {info(response)};
  EXPECT_EQ(samples_of_rows(rows, keys, 1, letters())[0][response], "bc");
}

TEST_F(DatasetFile, TextsOfRowsAreColumns) {
  const auto data = open(
    DataKind::prompts,
    "{\"prompt\": \"a\", \"level\": 3}\n"
    "{\"prompt\": \"b\", \"reward_model\": {\"ground_truth\": \"x\"}}\n");
  EXPECT_EQ(data.field(0, "level"), "3");
  EXPECT_EQ(data.field(0, "ground_truth"), std::nullopt);
  EXPECT_EQ(data.field(1, "ground_truth"), "x");
  EXPECT_EQ(data.field(1, "prompt"), "b");
  const std::vector<std::uint32_t> rows = {1, 1, 0};
  const std::vector<std::string> keys = {"prompt_ids", "ground_truth"};
  const auto columns = text_columns(data, rows, keys);
  ASSERT_EQ(columns.size(), 1u);
  EXPECT_THAT(columns[0].lengths, ElementsAre(1, 1, 0));
}

} // namespace
} // namespace troupe::models
