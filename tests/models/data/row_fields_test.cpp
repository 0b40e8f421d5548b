// Fields of rows through data.fields, as a data set reads them.
#include "models/data/dataset.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;
using troupe::testing::DatasetFile;

TEST_F(DatasetFile, AMissingColumnListsTheColumns) {
  auto given = options(DataKind::prompts, "{\"question\": \"a\", \"answer\": "
                                          "\"b\"}\n");
  given.fields = {{"prompt", "question"}, {"ground_truth", "solution"}};
  EXPECT_THAT(
    complaint(given),
    HasSubstr("rows.jsonl:1: ground_truth: expected a value in column "
              "'solution', got nothing (the row has question, "
              "answer)"));
}

} // namespace
} // namespace troupe::models
