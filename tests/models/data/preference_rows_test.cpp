// Rows of preferences beyond pairs of texts: margins, and labels of single
// responses.
#include "models/data/dataset.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::testing::DatasetFile;
using troupe::testing::letters;

TEST_F(DatasetFile, PreferencesMayHaveMargins) {
  auto given
    = options(DataKind::preference,
              "{\"chosen\": \"b\", \"rejected\": \"c\", \"m\": 2}\n"
              "{\"chosen\": \"b\", \"rejected\": \"c\", \"m\": -0.5}\n");
  const std::vector<std::uint32_t> both{1, 0};
  EXPECT_FALSE(
    Dataset::open(given, letters()).rows(both, SampleId(0)).has("pair_margin"));
  given.fields = {{"margin", "m"}};
  const auto rows = Dataset::open(given, letters()).rows(both, SampleId(0));
  EXPECT_THAT(packed<float>(rows, "pair_margin"), ElementsAre(-0.5F, 2.0F));
  EXPECT_THAT(rows.at("pair_margin").lengths, ElementsAre(1, 1));
  given = options(DataKind::preference,
                  "{\"chosen\": \"b\", \"rejected\": \"c\", \"m\": \"2\"}\n");
  given.fields = {{"margin", "m"}};
  EXPECT_THAT(complaint(given),
              HasSubstr("rows.jsonl:1: margin: expected a number"));
}

TEST_F(DatasetFile, LabelledResponsesHaveTheirLabel) {
  const auto data
    = open(DataKind::labelled,
           "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": true}\n"
           "{\"prompt\": \"ab\", \"completion\": \"\", \"label\": false}\n");
  const std::vector<std::uint32_t> both{0, 1};
  const auto rows = data.rows(both, SampleId(0));
  EXPECT_THAT(packed(rows, "sequence_ids"),
              ElementsAre(0, 10, 11, 1, 0, 10, 11, 1));
  EXPECT_THAT(packed<std::uint8_t>(rows, "loss_mask"),
              ElementsAre(0, 0, 1, 1, 0, 0, 0, 1));
  EXPECT_THAT(packed<std::uint8_t>(rows, "desirable"), ElementsAre(1, 0));
  const auto of = [&](const std::string& row) {
    return complaint(options(DataKind::labelled, row));
  };
  EXPECT_THAT(of("{\"prompt\": \"a\", \"completion\": \"b\"}"),
              HasSubstr("rows.jsonl:1: label: expected true or false"));
  EXPECT_THAT(of("{\"prompt\": \"a\", \"completion\": \"b\", \"label\": 1}"),
              HasSubstr("rows.jsonl:1: label: expected true or false"));
  EXPECT_THAT(of("{\"text\": \"a\", \"label\": true}"),
              HasSubstr("rows.jsonl:1: prompt: expected text"));
}

} // namespace
} // namespace troupe::models
