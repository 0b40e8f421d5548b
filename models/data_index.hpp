// What reading every row of a data file found: where the usable rows are, and a
// report. A run writes it to a file (RUN/data.index), which its workers and
// later starts map instead of reading all rows again.
//
// A file is used only if magic, version, length, checksum and key are right.
// The key is a text that names everything on which the index depends (the data
// file, the tokenizer, limits, the program); it is stored whole, so two keys
// never pass for one. Anything else is as if there were no file.
#pragma once

#include "models/jsonl.hpp"
#include "models/mapped_file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

/// The file of a run folder with the index of data.train.
inline constexpr const char* data_index_file = "data.index";

struct DatasetReport {
  std::uint64_t rows = 0; ///< in the file
  std::uint64_t bad_rows = 0;
  std::uint64_t overlong_rows = 0; ///< left out
  std::uint64_t truncated_rows = 0;
  /// Turns of the assistant without loss: the chat template changes them once
  /// others follow, so the model would learn to say what it is not to say.
  std::uint64_t unlearned_turns = 0;
  std::size_t longest = 0;           ///< tokens of the longest row that is used
  int longest_line = 0;              ///< where that row is
  std::vector<std::string> messages; ///< of the first bad rows
};

class DataIndex {
public:
  DataIndex(std::vector<JsonLines::Line> rows, DatasetReport report);
  DataIndex(const DataIndex&) = delete;
  DataIndex& operator=(const DataIndex&) = delete;
  DataIndex(DataIndex&&) = default;
  DataIndex& operator=(DataIndex&&) = default;
  ~DataIndex() = default;

  /// The index in `file`; nothing if there is none, or it cannot be read, or it
  /// isn't whole, or it was written under another key.
  static std::optional<DataIndex> map(const std::filesystem::path& file,
                                      const std::string& key);
  /// Under a temporary name that is then changed: nobody maps half a file.
  /// Throws FailureError (io).
  void write(const std::filesystem::path& file, const std::string& key) const;

  /// The usable rows in the order of the file.
  std::span<const JsonLines::Line> rows() const noexcept {
    return rows_;
  }
  const DatasetReport& report() const noexcept {
    return report_;
  }
  bool is_mapped() const noexcept {
    return !file_.bytes().empty();
  }

private:
  DataIndex(MappedFile file, std::span<const JsonLines::Line> rows,
            DatasetReport report);

  std::vector<JsonLines::Line> made_;     ///< empty where the rows are in file_
  MappedFile file_;                       ///< empty where the rows are in made_
  std::span<const JsonLines::Line> rows_; ///< points into one of the two
  DatasetReport report_;
};

} // namespace troupe::models
