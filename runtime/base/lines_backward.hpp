// The lines of a file from its last to its first. Only what is requested is
// read: the end of a file of gigabytes costs memory and time for that end only.
#pragma once

#include "net/base/descriptor.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::runtime {

class LinesBackward {
public:
  struct Line {
    std::uint64_t begin = 0; ///< offset of its first byte in the file
    std::string_view text;   ///< without the line end; valid until `next`
    bool whole = false;      ///< whether it has its line end
  };

  /// Throws FailureError (io) naming the file if it cannot be read.
  explicit LinesBackward(const std::filesystem::path& path);
  /// Returns the preceding line; nothing before the first one.
  std::optional<Line> next();

private:
  void read_more();

  std::filesystem::path path_;
  net::Descriptor file_;
  std::uint64_t begin_ = 0; ///< offset of `read_` in the file
  std::string read_;
  std::size_t left_ = 0; ///< length of the part of `read_`, from its start,
                         ///< that was not returned yet
};

} // namespace troupe::runtime
