// Pipes and devices in place of the files that commands read and write:
// `/dev/stdin`, a shell's `<(...)`, `/dev/null`. Rows are read more than once
// and by several processes, so rows from a pipe are copied to a file first;
// results are renamed into place, but into a pipe they are written when they
// are complete.
#pragma once

#include "config/base/error.hpp"
#include "runtime/base/temporary_folder.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// Rows that a command reads.
class RowInput {
public:
  /// Copies anything but a regular file to its end. Throws ConfigError of
  /// `option` if there is nothing to read.
  RowInput(std::string name, const std::string& option);

  /// Returns a regular file, which exists as long as this object.
  const std::string& file() const {
    return file_;
  }
  /// Returns the name that the user wrote.
  const std::string& name() const {
    return name_;
  }
  /// Returns the result of `work`; a ConfigError about the copy names what the
  /// user wrote.
  template <class Work>
  auto naming(const Work& work) const {
    try {
      return work();
    } catch (const ConfigError& error) {
      rethrow(error);
    }
  }

private:
  [[noreturn]] void rethrow(const ConfigError& error) const;

  std::string name_;
  std::string file_;
  std::unique_ptr<TemporaryFolder> copy_; ///< null: a regular file
};

/// Returns whether results for `path` are written into what exists there (a
/// pipe, a terminal, anything below /dev or /proc), not renamed over it.
bool is_stream(const std::filesystem::path& path);

/// Writes a command's whole result: into a stream, or as a file that replaces
/// the old one. Throws FailureError if it cannot; a reader that has left is no
/// failure.
void write_result(const std::filesystem::path& path, std::string_view text);
/// Writes the bytes of a file in the same way; `from` is kept if `to` is a
/// stream.
void move_result(const std::filesystem::path& from,
                 const std::filesystem::path& to);

} // namespace troupe::runtime
