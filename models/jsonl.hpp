// A file of JSON lines, mapped: an index of its lines, so that any row is read
// when it is needed and files may be larger than memory. Lines end in \n (a \r
// before it belongs to the end); blank lines are no rows but count as lines.
#pragma once

#include "models/mapped_file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

class JsonLines {
public:
  /// Indexes the lines; nothing is parsed. ConfigError if the file cannot be
  /// read, or is a Parquet file, a gzip file or one JSON list (each with the
  /// one-line conversion).
  static JsonLines open(const std::filesystem::path& path);
  /// The same over text of the caller's, which must outlive the object.
  static JsonLines view(std::string_view text, const std::string& file_name);

  std::size_t size() const noexcept {
    return lines_.size();
  }
  /// The text of a row, without its end of line.
  std::string_view text(std::size_t row) const;
  int line_number(std::size_t row) const; ///< from 1
  const std::string& file() const noexcept {
    return file_;
  }

private:
  struct Line {
    std::uint64_t begin;
    std::uint32_t size_bytes;
    std::uint32_t number;
  };

  MappedFile map_;
  std::string_view text_;
  std::string file_;
  std::vector<Line> lines_;
};

} // namespace troupe::models
