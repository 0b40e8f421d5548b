// Text files that must survive a kill: whole-file replacement, and JSON lines
// that are appended in one write each and cut back to a checkpoint on resume.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// Writes beside `path`, then renames over it. FailureError (io) names path
/// and reason ("No space left on device").
void replace_file(const std::filesystem::path& path, std::string_view text);

/// ConfigError naming the file if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Appends lines; each is in the file, whole, when append returns.
class JsonlFile {
public:
  /// Opens for appending, creating the file. FailureError (io) if it cannot.
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
/// and a last line without its end. No file: nothing. Returns lines dropped.
/// Reads the file from its end, as far as steps after `last_step` may reach:
/// samples of a long run are tens of gigabytes.
std::uint64_t cut_back(const std::filesystem::path& path,
                       std::uint64_t last_step);

} // namespace troupe::runtime
