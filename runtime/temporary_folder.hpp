// A folder that lives as long as its owner. A process that is killed cannot
// remove it, so the next owner in the same place does: an owner holds a lock,
// which the kernel frees, and whoever gets the lock of a folder may remove it.
#pragma once

#include <filesystem>
#include <string>

namespace troupe::runtime {

class TemporaryFolder {
public:
  /// Makes PARENT/PREFIXxxxxxx and removes folders of that kind without an
  /// owner. Throws std::system_error where it cannot be made.
  TemporaryFolder(const std::filesystem::path& parent,
                  const std::string& prefix);
  ~TemporaryFolder(); ///< removes it
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const {
    return path_;
  }

private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// One below TMPDIR or /tmp. Throws FailureError.
TemporaryFolder scratch_folder(const std::string& prefix);

} // namespace troupe::runtime
