// A file mapped read-only into memory: weights and data sets are read through
// the page cache and never copied as a whole. A missing or unreadable file is a
// user's mistake (ConfigError), because the user named it. If somebody makes it
// shorter meanwhile, the process ends with a line that names it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace troupe::models {

class MappedFile {
public:
  MappedFile() = default;
  /// Maps `path`. Throws ConfigError naming it if it cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept {
    return bytes_;
  }
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

private:
  std::span<const std::byte> bytes_; ///< the mapping; empty for an empty file
};

} // namespace troupe::models
