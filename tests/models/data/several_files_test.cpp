// Several files as one data set: their rows follow each other, and every
// message names the file and line that it is about.
#include "models/data/dataset.hpp"
#include "models/data/plain_rows.hpp"

#include "tests/support/models/dataset_support.hpp"
#include "tests/support/models/gzip_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::AllOf, ::testing::ElementsAre;
using ::testing::HasSubstr, ::testing::Not;
using testing::write_text;
using troupe::testing::DatasetFile;
using troupe::testing::gzip;
using troupe::testing::letters;

std::string prompt_lines(const std::string& prompts) {
  std::string lines;
  for (const char prompt : prompts)
    lines += std::string(R"({"prompt": ")") + prompt + "\"}\n";
  return lines;
}

class SeveralFiles : public DatasetFile {
protected:
  DatasetOptions files_of(const std::string& first, const std::string& second) {
    write_text(folder_ / "a.jsonl", first);
    write_text(folder_ / "b.jsonl.gz", gzip(second));
    DatasetOptions given;
    given.files = {folder_ / "a.jsonl", folder_ / "b.jsonl.gz"};
    return given;
  }
};

TEST_F(SeveralFiles, RowsFollowEachOther) {
  const auto data = Dataset::open(
    files_of(prompt_lines("ab"), prompt_lines("cde")), letters());
  ASSERT_EQ(data.size(), 5U);
  EXPECT_THAT(data.report().usable, ElementsAre(2, 3));
  std::string prompts;
  for (std::uint32_t row = 0; row < data.size(); ++row)
    prompts += data.text(row).prompt;
  EXPECT_EQ(prompts, "abcde");
  EXPECT_EQ(data.file_of(1), 0U);
  EXPECT_EQ(data.file_of(2), 1U);
  EXPECT_EQ(data.text(3).line, 2) << "of its own file";
}

TEST_F(SeveralFiles, ABadRowIsNamedWithItsFileAndLine) {
  auto given = files_of(prompt_lines("ab"), prompt_lines("c") + "no row\n");
  EXPECT_THAT(complaint(given), HasSubstr("b.jsonl.gz:2: "));
  given.on_bad_row = "skip";
  const auto data = Dataset::open(given, letters());
  EXPECT_EQ(data.report().bad_rows, 1U);
  EXPECT_THAT(data.report().messages, ElementsAre(HasSubstr("b.jsonl.gz:2")));
}

TEST_F(SeveralFiles, TheLongestRowIsNamedWithItsFile) {
  const auto data = Dataset::open(
    files_of(prompt_lines("ab"), "\n{\"prompt\": \"abcd\"}\n"), letters());
  const auto place = data.longest_place();
  EXPECT_THAT(place.file, HasSubstr("b.jsonl.gz"));
  EXPECT_EQ(place.line, 2);
}

TEST_F(SeveralFiles, AFileWithoutUsableRowsIsRefusedByName) {
  EXPECT_THAT(complaint(files_of(prompt_lines("ab"), "")),
              HasSubstr("b.jsonl.gz: expected at least one row"));
}

TEST_F(SeveralFiles, OpenByOneIndex) {
  const auto given = files_of(prompt_lines("ab"), prompt_lines("cde"));
  const DatasetOpening opening{.index_file = folder_ / "data.index",
                               .index_key = "both"};
  Dataset::open(given, letters(), opening)
    .keep_index(opening.index_file, opening.index_key);
  const auto again = Dataset::open(given, letters(), opening);
  EXPECT_FALSE(again.was_read());
  EXPECT_EQ(again.text(4).prompt, "e");
  EXPECT_EQ(again.file_of(4), 1U);
}

TEST_F(SeveralFiles, AMissingOneIsNamed) {
  Settings settings;
  settings.workflow = "ppo";
  write_text(folder_ / "a.jsonl", prompt_lines("a"));
  settings.data.sources
    = {{(folder_ / "a.jsonl").string(), 1}, {"nowhere.jsonl", 1}};
  try {
    require_data_file(settings);
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'nowhere.jsonl', which is no file"));
  }
}

using PlainRows = DatasetFile;

TEST_F(PlainRows, JsonLinesAreReadInPlace) {
  write_text(folder_ / "a.jsonl", prompt_lines("a"));
  EXPECT_EQ(plain_rows(folder_ / "a.jsonl"), folder_ / "a.jsonl");
  EXPECT_EQ(plain_rows("nowhere.jsonl"), "nowhere.jsonl");
}

TEST_F(PlainRows, AGzipFileIsUnpackedOnceIntoTheCache) {
  const auto packed = folder_ / "train.jsonl.gz";
  write_text(packed, gzip(prompt_lines("ab")));
  const auto plain = plain_rows(packed);
  EXPECT_EQ(plain.filename(), "train.jsonl");
  EXPECT_THAT(plain.string(), HasSubstr("cache/troupe/rows/"));
  EXPECT_EQ(testing::read_text(plain), prompt_lines("ab"));
  const auto made = std::filesystem::last_write_time(plain);
  EXPECT_EQ(plain_rows(packed), plain);
  EXPECT_EQ(std::filesystem::last_write_time(plain), made);
}

TEST_F(PlainRows, AChangedFileIsUnpackedAgain) {
  const auto packed = folder_ / "train.jsonl.gz";
  write_text(packed, gzip(prompt_lines("ab")));
  const auto plain = plain_rows(packed);
  write_text(packed, gzip(prompt_lines("abcdefg")));
  EXPECT_EQ(plain_rows(packed), plain);
  EXPECT_EQ(testing::read_text(plain), prompt_lines("abcdefg"));
}

TEST_F(PlainRows, WorkersGetThePlainFiles) {
  Settings settings;
  const auto packed = (folder_ / "train.jsonl.gz").string();
  const auto as_is = (folder_ / "eval.jsonl").string();
  write_text(packed, gzip(prompt_lines("ab")));
  write_text(as_is, prompt_lines("c"));
  settings.data.sources = {{packed, 2}, {as_is, 1}};
  settings.eval.data = as_is;
  const auto plain = with_plain_rows(settings);
  EXPECT_THAT(plain.data.sources.at(0).path,
              AllOf(HasSubstr("train.jsonl"), Not(HasSubstr(".gz"))));
  EXPECT_EQ(plain.data.sources.at(0).weight, 2);
  EXPECT_EQ(plain.data.sources.at(1).path, as_is);
  EXPECT_EQ(plain.eval.data, as_is);
  EXPECT_EQ(plain.data.ptx, "");
}

} // namespace
} // namespace troupe::models
