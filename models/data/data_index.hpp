// Result of reading every row of the data files: the locations of usable rows,
// file after file, and a report. A run writes it to a file (RUN/data.index),
// which its workers and later starts map instead of reading all rows again.
//
// A file is used only if magic, version, length, checksum and key are right.
// The key is a text that names everything on which the index depends (the data
// file, the tokenizer, limits, the program); it is stored in full, so two keys
// are never confused. Any other file is ignored.
#pragma once

#include "models/io/jsonl.hpp"
#include "models/io/mapped_file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

/// File in a run folder with the index of data.train.
inline constexpr const char* data_index_file = "data.index";

struct DatasetReport {
  static constexpr std::size_t most_messages = 5;
  std::uint64_t rows = 0; ///< in all files
  std::uint64_t bad_rows = 0;
  std::uint64_t overlong_rows = 0; ///< left out
  std::uint64_t truncated_rows = 0;
  /// Assistant turns excluded from the loss: the chat template changes them
  /// once others follow, so training would teach the model a form that it must
  /// not produce.
  std::uint64_t unlearned_turns = 0;
  std::size_t longest = 0;           ///< tokens of the longest usable row
  int longest_line = 0;              ///< line of that row
  std::uint32_t longest_file = 0;    ///< number of its file, from 0
  std::vector<std::string> messages; ///< for the first bad rows
  std::vector<std::uint32_t> usable; ///< rows of each file

  /// Adds the report of the next file, of whose rows so many are usable.
  void append(const DatasetReport& next, std::uint32_t usable_rows);
};

/// A usable row: its location in the file, its number of tokens, and a hash of
/// its text, by which a later reader knows that it is still the same.
struct IndexedRow {
  JsonLines::Line line;
  std::uint32_t tokens = 0; ///< sum over its texts
  std::uint32_t hash = 0;   ///< row_hash of its text
};
/// Returns 32 bits of a hash, the same on every machine.
std::uint32_t row_hash(std::string_view text);

class DataIndex {
public:
  DataIndex(std::vector<IndexedRow> rows, DatasetReport report);
  DataIndex(const DataIndex&) = delete;
  DataIndex& operator=(const DataIndex&) = delete;
  DataIndex(DataIndex&&) = default;
  DataIndex& operator=(DataIndex&&) = default;
  ~DataIndex() = default;

  /// Returns the index in `file`; nullopt if it is missing, unreadable,
  /// incomplete, or written under another key.
  static std::optional<DataIndex> map(const std::filesystem::path& file,
                                      const std::string& key);
  /// Writes under a temporary name and renames, so that no process maps a
  /// partial file. Throws FailureError (io).
  void write(const std::filesystem::path& file, const std::string& key) const;

  /// Returns the usable rows in file order.
  std::span<const IndexedRow> rows() const noexcept {
    return rows_;
  }
  const DatasetReport& report() const noexcept {
    return report_;
  }
  bool is_mapped() const noexcept {
    return !file_.bytes().empty();
  }

private:
  DataIndex(MappedFile file, std::span<const IndexedRow> rows,
            DatasetReport report);

  std::vector<IndexedRow> made_;     ///< empty if the rows are in file_
  MappedFile file_;                  ///< empty if the rows are in made_
  std::span<const IndexedRow> rows_; ///< points into one of the two
  DatasetReport report_;
};

} // namespace troupe::models
