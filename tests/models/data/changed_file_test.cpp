// A data file that somebody changes while a run reads rows of it.
#include "models/data/dataset.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::write_text;
using troupe::testing::DatasetFile;

/// Returns the message of reading all of two rows.
std::string complaint_of_rows(const Dataset& data) {
  try {
    const std::vector<std::uint32_t> both{0, 1};
    data.rows(both, SampleId(0));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no complaint";
}

TEST_F(DatasetFile, ARowThatWasChangedUnderTheRunIsRefusedByName) {
  const std::string text = "{\"prompt\": \"ab\"}\n{\"prompt\": \"cd\"}\n";
  const auto data = open(DataKind::prompts, text);
  EXPECT_EQ(complaint_of_rows(data), "no complaint");
  auto edited = text;
  edited[text.find('d')] = 'e';
  write_text(folder_ / "rows.jsonl", edited); // of the same size, in place
  EXPECT_THAT(complaint_of_rows(data),
              AllOf(HasSubstr("rows.jsonl:2"), HasSubstr("was changed")));
  write_text(folder_ / "rows.jsonl", text);
  EXPECT_EQ(complaint_of_rows(data), "no complaint");
}

TEST_F(DatasetFile, AFileThatWasCutUnderTheRunIsRefusedByName) {
  const std::string text = "{\"prompt\": \"ab\"}\n{\"prompt\": \"cd\"}\n";
  const auto data = open(DataKind::prompts, text);
  fs::resize_file(folder_ / "rows.jsonl", 20);
  EXPECT_THAT(complaint_of_rows(data),
              AllOf(HasSubstr("rows.jsonl:2"), HasSubstr("was changed")));
  fs::resize_file(folder_ / "rows.jsonl", 0);
  EXPECT_THAT(complaint_of_rows(data), HasSubstr("rows.jsonl:1"));
}

TEST_F(DatasetFile, AFileThatIsReplacedUnderTheRunIsReadAsItWas) {
  const auto data = open(DataKind::prompts, "{\"prompt\": \"ab\"}\n"
                                            "{\"prompt\": \"cd\"}\n");
  write_text(folder_ / "new.jsonl", "{\"prompt\": \"x\"}\n");
  fs::rename(folder_ / "new.jsonl", folder_ / "rows.jsonl");
  EXPECT_EQ(complaint_of_rows(data), "no complaint");
  EXPECT_EQ(data.text(1).prompt, "cd");
}

} // namespace
} // namespace troupe::models
