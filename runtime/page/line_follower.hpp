// Whole lines of a growing file, in portions: a viewer of a long run gets the
// newest ones, and neither it nor the master holds the whole file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::runtime {

class LineFollower {
public:
  /// Follows a file; if it has more than `history_bytes`, reads only the lines
  /// that begin in the last so many bytes.
  LineFollower(const std::filesystem::path& file, std::uint64_t history_bytes);

  /// Returns the next whole lines, about `max_bytes` of them.
  std::string read(std::size_t max_bytes);
  /// Returns the bytes that existed at the beginning and are not read yet.
  std::uint64_t unread_bytes() const {
    return unread_;
  }

private:
  void follow_cut();
  bool was_replaced();

  std::filesystem::path path_;
  std::ifstream file_;
  ino_t inode_ = 0;
  std::uint64_t unread_ = 0;
  std::string pending_;    ///< the beginning of a line
  bool in_a_line_ = false; ///< inside a line whose beginning was skipped
};

} // namespace troupe::runtime
