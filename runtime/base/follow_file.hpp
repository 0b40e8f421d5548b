// Reads what is appended to a growing file, waking up when it grows (`logs
// -f`).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::runtime {

class FollowFile {
public:
  /// Throws ConfigError if the file cannot be read.
  explicit FollowFile(const std::filesystem::path& path);
  ~FollowFile();
  FollowFile(const FollowFile&) = delete;
  FollowFile& operator=(const FollowFile&) = delete;

  /// Returns what was appended since the last call; at the first call, the
  /// whole file.
  std::string read_new();
  /// Returns when the file may have grown, or after half a second.
  void wait();

private:
  int file_ = -1;
  int notify_ = -1;
};

} // namespace troupe::runtime
