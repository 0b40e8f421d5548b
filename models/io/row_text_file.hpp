// The file of a data set while a run reads rows of it: by position, never
// mapped, because a mapped file that becomes shorter ends the process by a
// signal.
#pragma once

#include "net/base/descriptor.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::models {

class RowTextFile {
public:
  RowTextFile() = default;
  /// Opens `path`. Throws ConfigError naming it if it cannot be read.
  explicit RowTextFile(const std::filesystem::path& path);

  /// Returns the bytes at a position, fewer if the file ends before. Throws
  /// FailureError (io) if they cannot be read. Thread-safe.
  std::string read(std::uint64_t begin, std::size_t size_bytes) const;

private:
  std::string path_;
  net::Descriptor file_;
};

} // namespace troupe::models
