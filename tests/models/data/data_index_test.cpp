// The index of a data file: another process maps exactly what one process
// wrote, and a pass by several threads finds what one thread finds.
#include "models/data/data_index.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>
#include <sys/resource.h>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::letters;
using testing::read_text;
using testing::write_text;
using troupe::testing::DatasetFile;
using troupe::testing::TempFolder;

class DataIndexFile : public ::testing::Test {
protected:
  DataIndexFile() {
    DatasetReport report;
    report.rows = 7;
    report.bad_rows = 4;
    report.overlong_rows = 1;
    report.truncated_rows = 2;
    report.unlearned_turns = 3;
    report.longest = 31;
    report.longest_line = 9;
    report.longest_file = 1;
    report.usable = {1, 1};
    report.messages = {"rows.jsonl:2: \xFF"};
    DataIndex({{{0, 10, 1}, 7}, {{2'000'000'000'000, 12, 9}, 31}}, report)
      .write(file(), "key");
  }
  std::filesystem::path file() const {
    return folder_ / "data.index";
  }
  TempFolder folder_;
};

TEST_F(DataIndexFile, AnUnreadableFileIsIgnored) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  auto none_left = before; // root may read everything, but not this
  none_left.rlim_cur = 3;
  ::setrlimit(RLIMIT_NOFILE, &none_left);
  EXPECT_NO_THROW(EXPECT_FALSE(DataIndex::map(file(), "key")));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(DataIndex::map(file(), "key"));
}

TEST_F(DataIndexFile, ReadsBackWhatWasWritten) {
  const auto found = DataIndex::map(file(), "key");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_mapped());
  ASSERT_EQ(found->rows().size(), 2U);
  EXPECT_EQ(found->rows()[1].line.begin, 2'000'000'000'000U);
  EXPECT_EQ(found->rows()[1].line.size_bytes, 12U);
  EXPECT_EQ(found->rows()[1].line.number, 9U);
  EXPECT_EQ(found->rows()[1].tokens, 31U);
  const auto& report = found->report();
  EXPECT_EQ(report.rows, 7U);
  EXPECT_EQ(report.bad_rows, 4U);
  EXPECT_EQ(report.overlong_rows, 1U);
  EXPECT_EQ(report.truncated_rows, 2U);
  EXPECT_EQ(report.unlearned_turns, 3U);
  EXPECT_EQ(report.longest, 31U);
  EXPECT_EQ(report.longest_line, 9);
  EXPECT_EQ(report.longest_file, 1U);
  EXPECT_THAT(report.usable, ElementsAre(1, 1));
  EXPECT_THAT(report.messages, ElementsAre(HasSubstr("rows.jsonl:2: ")));
}

TEST_F(DataIndexFile, IsIgnoredUnderAnotherKeyOrName) {
  EXPECT_FALSE(DataIndex::map(file(), "other"));
  EXPECT_FALSE(DataIndex::map(file(), ""));
  EXPECT_FALSE(DataIndex::map(folder_ / "none", "key"));
}

TEST_F(DataIndexFile, IsIgnoredWithAnyByteChanged) {
  const auto whole = read_text(file());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    write_text(file(), changed);
    EXPECT_FALSE(DataIndex::map(file(), "key")) << "byte " << at;
  }
}

TEST_F(DataIndexFile, IsIgnoredWhenTruncatedOrExtended) {
  const auto whole = read_text(file());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_text(file(), whole.substr(0, size));
    EXPECT_FALSE(DataIndex::map(file(), "key")) << size << " bytes";
  }
  write_text(file(), whole + std::string(sizeof(IndexedRow), '\0'));
  EXPECT_FALSE(DataIndex::map(file(), "key"));
}

std::string many_rows(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += i % 7 == 3
              ? "broken\n"
              : "{\"prompt\": \"" + std::string(1 + i % 11, 'a') + "\"}\n";
  return text;
}

TEST_F(DatasetFile, OpensByItsIndexWithoutReadingARow) {
  auto given = options(DataKind::prompts, many_rows(3000));
  given.on_bad_row = "skip";
  given.max_tokens = 9;
  std::uint64_t told = 0;
  const DatasetOpening opening{.index_file = folder_ / "data.index",
                               .index_key = "these rows",
                               .on_rows
                               = [&](auto done, auto) { told = done; }};
  const auto first = Dataset::open(given, letters(), opening);
  EXPECT_TRUE(first.was_read());
  EXPECT_EQ(told, 3000U);
  first.keep_index(opening.index_file, opening.index_key);
  told = 0;
  const auto again = Dataset::open(given, letters(), opening);
  EXPECT_FALSE(again.was_read());
  EXPECT_EQ(told, 0U);
  ASSERT_EQ(again.size(), first.size());
  EXPECT_EQ(again.report().bad_rows, first.report().bad_rows);
  EXPECT_EQ(again.report().messages, first.report().messages);
  for (const std::uint32_t row : {0U, 100U, first.size() - 1}) {
    EXPECT_EQ(again.text(row).line, first.text(row).line);
    EXPECT_EQ(again.text(row).prompt, first.text(row).prompt);
    EXPECT_EQ(
      packed(again.rows(std::span(&row, 1), SampleId(0)), "prompt_ids"),
      packed(first.rows(std::span(&row, 1), SampleId(0)), "prompt_ids"));
  }
}

TEST_F(DatasetFile, KnowsTheTokensOfARowWithoutReadingItAgain) {
  const auto expect_tokens = [&](DataKind kind, const std::string& text) {
    const auto data = open(kind, text);
    for (std::uint32_t row = 0; row < data.size(); ++row) {
      std::uint32_t tokens = 0;
      for (const auto& column :
           data.rows(std::span(&row, 1), SampleId(0)).columns)
        if (column.dtype == DType::i32)
          tokens += column.lengths[0];
      EXPECT_EQ(data.num_tokens(row), tokens) << "row " << row;
    }
  };
  expect_tokens(DataKind::prompts,
                "{\"prompt\": \"abc\"}\n{\"prompt\": \"a\"}\n");
  expect_tokens(DataKind::sft, "{\"prompt\": \"ab\", \"completion\": \"c\"}\n");
  expect_tokens(
    DataKind::preference,
    "{\"prompt\": \"a\", \"chosen\": \"bc\", \"rejected\": \"d\"}\n");
}

TEST_F(DatasetFile, ReadsTheSameWithAnyNumberOfThreads) {
  auto given = options(DataKind::prompts, many_rows(5000));
  given.on_bad_row = "skip";
  given.max_tokens = 9;
  std::vector<std::string> files;
  for (const std::uint32_t threads : {1, 2, 5}) {
    Dataset::open(given, letters(), {.num_threads = threads})
      .keep_index(folder_ / "data.index", "key");
    files.push_back(read_text(folder_ / "data.index"));
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(files[0], files[2]);
}

TEST_F(DatasetFile, ReportsTheFirstMistakeWithAnyNumberOfThreads) {
  std::string text;
  for (int i = 1; i <= 4000; ++i)
    text += i % 1000 == 700 ? "broken\n" : "{\"prompt\": \"a\"}\n";
  const auto given = options(DataKind::prompts, text);
  for (const std::uint32_t threads : {1, 4}) {
    EXPECT_THAT(complaint(given, {.num_threads = threads}),
                HasSubstr("rows.jsonl:700: "));
  }
}

TEST_F(DatasetFile, ReadsNoFurtherThanTheRequestedRows) {
  auto given = options(DataKind::prompts, "\n{\"prompt\": \"a\"}\n\n"
                                          "{\"prompt\": \"b\"}\nbroken\n");
  given.first_rows = 2;
  EXPECT_EQ(Dataset::open(given, letters()).size(), 2U);
}

} // namespace
} // namespace troupe::models
