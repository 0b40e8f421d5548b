// Pipes and devices in place of the files that verbs read and write:
// `/dev/stdin`, a shell's `<(...)`, `/dev/null`. Rows are read more than once
// and by several processes, so rows from a pipe are copied to a file first;
// results are renamed into place, but into a pipe they are written when they
// are complete.
#pragma once

#include "config/error.hpp"
#include "runtime/temporary_folder.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// Rows that a verb reads.
class RowInput {
public:
  /// Copies what is no regular file to its end. ConfigError of `option` where
  /// there is nothing to read.
  RowInput(std::string name, const std::string& option);

  /// A regular file, while this lives.
  const std::string& file() const {
    return file_;
  }
  /// What the user wrote.
  const std::string& name() const {
    return name_;
  }
  /// Gives what `work` gives; a ConfigError about the copy names what the user
  /// wrote.
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

/// Whether results for `path` are written into what is there (a pipe, a
/// terminal, anything below /dev or /proc), not renamed over it.
bool is_stream(const std::filesystem::path& path);

/// Writes a verb's whole result: into a stream, or as a file that replaces the
/// old one. FailureError where it cannot; a reader that has left is one.
void write_result(const std::filesystem::path& path, std::string_view text);
/// The same with the bytes of a file, which a stream leaves where it is.
void move_result(const std::filesystem::path& from,
                 const std::filesystem::path& to);

} // namespace troupe::runtime
