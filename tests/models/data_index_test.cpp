// The index of a data file: what one process wrote, another maps, and nothing
// else; and a pass by several threads finds what one thread finds.
#include "models/data_index.hpp"
#include "models/threads.hpp"

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

/// A pass by so many threads while it lives.
class PassThreads {
public:
  explicit PassThreads(int threads) : before_(compute_threads()) {
    set_compute_threads(threads);
  }
  ~PassThreads() {
    set_compute_threads(before_);
  }

private:
  int before_;
};

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
    report.messages = {"rows.jsonl:2: \xFF"};
    DataIndex({{0, 10, 1}, {2'000'000'000'000, 12, 9}}, report)
      .write(file(), "key");
  }
  std::filesystem::path file() const {
    return folder_ / "data.index";
  }
  TempFolder folder_;
};

TEST_F(DataIndexFile, ThatCannotBeReadIsAsIfThereWereNone) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  auto none_left = before; // root may read everything, but not so
  none_left.rlim_cur = 3;
  ::setrlimit(RLIMIT_NOFILE, &none_left);
  EXPECT_NO_THROW(EXPECT_FALSE(DataIndex::map(file(), "key")));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(DataIndex::map(file(), "key"));
}

TEST_F(DataIndexFile, GivesWhatWasWritten) {
  const auto found = DataIndex::map(file(), "key");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_mapped());
  ASSERT_EQ(found->rows().size(), 2U);
  EXPECT_EQ(found->rows()[1].begin, 2'000'000'000'000U);
  EXPECT_EQ(found->rows()[1].size_bytes, 12U);
  EXPECT_EQ(found->rows()[1].number, 9U);
  const auto& report = found->report();
  EXPECT_EQ(report.rows, 7U);
  EXPECT_EQ(report.bad_rows, 4U);
  EXPECT_EQ(report.overlong_rows, 1U);
  EXPECT_EQ(report.truncated_rows, 2U);
  EXPECT_EQ(report.unlearned_turns, 3U);
  EXPECT_EQ(report.longest, 31U);
  EXPECT_EQ(report.longest_line, 9);
  EXPECT_THAT(report.messages, ElementsAre(HasSubstr("rows.jsonl:2: ")));
}

TEST_F(DataIndexFile, IsNoneUnderAnotherKeyOrName) {
  EXPECT_FALSE(DataIndex::map(file(), "other"));
  EXPECT_FALSE(DataIndex::map(file(), ""));
  EXPECT_FALSE(DataIndex::map(folder_ / "none", "key"));
}

TEST_F(DataIndexFile, IsNoneWithAnyByteChanged) {
  const auto whole = read_text(file());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    write_text(file(), changed);
    EXPECT_FALSE(DataIndex::map(file(), "key")) << "byte " << at;
  }
}

TEST_F(DataIndexFile, IsNoneWhenCutOrContinued) {
  const auto whole = read_text(file());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_text(file(), whole.substr(0, size));
    EXPECT_FALSE(DataIndex::map(file(), "key")) << size << " bytes";
  }
  write_text(file(), whole + std::string(16, '\0'));
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

TEST_F(DatasetFile, ReadsTheSameWithAnyNumberOfThreads) {
  auto given = options(DataKind::prompts, many_rows(5000));
  given.on_bad_row = "skip";
  given.max_tokens = 9;
  std::vector<std::string> files;
  for (const int threads : {1, 2, 5}) {
    const PassThreads some(threads);
    Dataset::open(given, letters()).keep_index(folder_ / "data.index", "key");
    files.push_back(read_text(folder_ / "data.index"));
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(files[0], files[2]);
}

TEST_F(DatasetFile, SaysTheFirstOfSeveralMistakesWithAnyNumberOfThreads) {
  std::string text;
  for (int i = 1; i <= 4000; ++i)
    text += i % 1000 == 700 ? "broken\n" : "{\"prompt\": \"a\"}\n";
  const auto given = options(DataKind::prompts, text);
  for (const int threads : {1, 4}) {
    const PassThreads some(threads);
    EXPECT_THAT(complaint(given), HasSubstr("rows.jsonl:700: "));
  }
}

TEST_F(DatasetFile, LooksNoFurtherThanTheFirstRowsThatAreAskedFor) {
  auto given = options(DataKind::prompts, "\n{\"prompt\": \"a\"}\n\n"
                                          "{\"prompt\": \"b\"}\nbroken\n");
  given.first_rows = 2;
  EXPECT_EQ(Dataset::open(given, letters()).size(), 2U);
}

} // namespace
} // namespace troupe::models
