// A file written beside its name and renamed when it is whole, so that nobody
// ever sees half of it. Every failure (disk full, ...) is a FailureError (io)
// that names the path; the temporary file is then removed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace troupe::models::internal {

class FileWriter {
public:
  explicit FileWriter(std::filesystem::path path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter(); ///< without commit(): removes what was written

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Closes and renames; with `sync` the bytes and the name are on the disk.
  void commit(bool sync);

private:
  [[noreturn]] void fail(const char* doing) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
};

/// Writes a whole small file.
void write_file(const std::filesystem::path& path, std::string_view text,
                bool sync);

} // namespace troupe::models::internal
