// Whole lines of a file that grows, in portions: a watcher of a long run gets
// the newest ones, and neither it nor the master holds the whole file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::runtime {

class LineFollower {
public:
  /// Of a file with more than `history_bytes`, only the lines that begin in the
  /// last so many.
  LineFollower(const std::filesystem::path& file, std::uint64_t history_bytes);

  /// Whole lines that were not given yet, about `max_bytes` of them.
  std::string read(std::size_t max_bytes);
  /// Bytes that were there at the beginning and are not read yet.
  std::uint64_t unread_bytes() const {
    return unread_;
  }

private:
  std::ifstream file_;
  std::uint64_t unread_ = 0;
  std::string pending_;    ///< the beginning of a line
  bool in_a_line_ = false; ///< of which the beginning was left out
};

} // namespace troupe::runtime
