// The lines of a file from its last to its first. What a reader does not ask
// for is not read: the end of a file of gigabytes costs memory and time for
// that end only.
#pragma once

#include "net/descriptor.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::runtime {

class LinesBackward {
public:
  struct Line {
    std::uint64_t begin = 0; ///< its first byte's place in the file
    std::string_view text;   ///< without the line end; valid until `next`
    bool whole = false;      ///< it has its line end
  };

  /// Throws FailureError (io) naming the file if it cannot be read.
  explicit LinesBackward(const std::filesystem::path& path);
  /// The line before; nothing before the first one.
  std::optional<Line> next();

private:
  void read_more();

  std::filesystem::path path_;
  net::Descriptor file_;
  std::uint64_t begin_ = 0; ///< of `read_` in the file
  std::string read_;
  std::size_t left_ = 0; ///< of `read_`, from its start: not given yet
};

} // namespace troupe::runtime
