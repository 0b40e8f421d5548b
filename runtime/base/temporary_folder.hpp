// A folder that exists as long as its owner. A process that is killed cannot
// remove it, so the next owner in the same place does: an owner holds a lock,
// which the kernel frees, and a process that gets the lock of a folder may
// remove it.
#pragma once

#include <filesystem>
#include <string>

namespace troupe::runtime {

class TemporaryFolder {
public:
  /// Creates PARENT/PREFIXxxxxxx and removes folders of that kind without an
  /// owner. Throws std::system_error if it cannot be created.
  TemporaryFolder(const std::filesystem::path& parent,
                  const std::string& prefix);
  ~TemporaryFolder(); ///< removes the folder
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const {
    return path_;
  }

private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Creates one below TMPDIR or /tmp. Throws FailureError.
TemporaryFolder scratch_folder(const std::string& prefix);

} // namespace troupe::runtime
