// A file that is written beside its name and renamed when it is whole, so that
// no reader ever sees half of it. Every failure (disk full, ...) is a
// FailureError (io) that names the path; the temporary file is then removed. It
// is always a new file: others who may write in the folder cannot put one of
// theirs, or a link, in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Says if the bytes and the name must be on the disk after a commit.
enum class Sync : std::uint8_t { no, yes };
/// Says who may read a file: all whom the umask allows, or its owner alone.
enum class Readers : std::uint8_t { all, owner };

class AtomicFile {
public:
  /// `who` fails if it cannot be written: "master", "trace export".
  explicit AtomicFile(std::filesystem::path path, std::string who = "",
                      Readers readers = Readers::all);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile(); ///< without commit(): removes what was written

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Closes and renames.
  void commit(Sync sync = Sync::no);

private:
  [[noreturn]] void fail(const char* doing) const;
  /// Removes the temporary file, then fails with the reason from before.
  [[noreturn]] void fail_closed(const char* doing) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::string who_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0; ///< written so far
  std::uint32_t crc32_ = 0; ///< of them, while somebody collects
};

/// A file as its writer knows it, whatever is on the disk.
struct WrittenFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};

/// Collects what this thread commits during its lifetime, so that a checksum
/// is that of the bytes that were written and nobody reads them again.
class WrittenFiles {
public:
  WrittenFiles();
  ~WrittenFiles();
  WrittenFiles(const WrittenFiles&) = delete;
  WrittenFiles& operator=(const WrittenFiles&) = delete;

  std::vector<WrittenFile> take() {
    return std::move(files_);
  }

private:
  friend class AtomicFile;
  std::vector<WrittenFile> files_;
  WrittenFiles* before_; ///< collects again afterwards
};

/// Writes a whole file, in place of one that may be there.
void replace_file(const std::filesystem::path& path, std::string_view text,
                  Sync sync = Sync::no);
/// Writes a secret: a file that only its owner can read at any moment.
void replace_private_file(const std::filesystem::path& path,
                          std::string_view text);

} // namespace troupe
