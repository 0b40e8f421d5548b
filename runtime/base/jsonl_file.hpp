// Text files that must survive a kill: JSON lines that are appended in one
// write each and cut back to a checkpoint on resume. Whole files are replaced
// with config/base/atomic_file.hpp.
#pragma once

#include "config/base/atomic_file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// Reads a whole file. Throws ConfigError naming it if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Appends lines; each is completely in the file when append returns.
class JsonlFile {
public:
  /// Opens for appending, creating the file. Throws FailureError (io) if it
  /// cannot.
  explicit JsonlFile(const std::filesystem::path& path);
  ~JsonlFile();
  JsonlFile(JsonlFile&& other) noexcept;
  JsonlFile& operator=(JsonlFile&&) = delete;
  /// `line` is one JSON document without a line end.
  void append(std::string_view line);

private:
  std::filesystem::path path_;
  int fd_ = -1;
};

/// Keeps the lines whose number `step` is at most `last_step`, drops the rest
/// and a last line without its end. Does nothing without a file. Returns the
/// number of lines dropped. Reads the file from its end, as far as steps after
/// `last_step` may reach: samples of a long run are tens of gigabytes.
std::uint64_t cut_back(const std::filesystem::path& path,
                       std::uint64_t last_step);
/// Puts a copy of the file in its place. What a process still appends that
/// opened the file before, and that nobody can end, reaches the old one, which
/// has no name any more. Does nothing without a file.
void replace_by_copy(const std::filesystem::path& path);

} // namespace troupe::runtime
