// The text of a file of JSON lines: an index of its lines, so that rows are
// read when needed and files may be larger than memory. Lines end in \n (a
// preceding \r belongs to the end); blank lines are not rows but count as
// lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

class JsonLines {
public:
  /// Location of a row in the file.
  struct Line {
    std::uint64_t begin = 0;
    std::uint32_t size_bytes = 0; ///< without its end of line
    std::uint32_t number = 0;     ///< from 1
  };

  /// Indexes the lines of a file's text, which must outlive the object; nothing
  /// is parsed. Throws ConfigError for a Parquet file, a gzip file or a single
  /// JSON list (each with the one-line conversion). With `first_rows` > 0 the
  /// rest of the text is ignored.
  static JsonLines view(std::string_view text, const std::string& file_name,
                        std::size_t first_rows = 0);

  std::size_t size() const noexcept {
    return lines_.size();
  }
  /// Returns the text of a row, without its end of line.
  std::string_view text(std::size_t row) const;
  const Line& line(std::size_t row) const {
    return lines_.at(row);
  }
  int line_number(std::size_t row) const; ///< from 1
  const std::string& file() const noexcept {
    return file_;
  }

private:
  std::string_view text_;
  std::string file_;
  std::vector<Line> lines_;
};

} // namespace troupe::models
