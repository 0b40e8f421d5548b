// A folder in TMPDIR that the workers of a run on one host share: it exists as
// long as one of them holds it. Each holds a lock, which the kernel frees with
// a killed process; the last to leave removes the folder, and who makes one
// removes those that nobody holds.
#pragma once

#include <filesystem>
#include <string>

namespace troupe::actors {

class HostFolder {
public:
  /// Creates PARENT/troupe-files-NAME, or enters it. Throws FailureError (io).
  HostFolder(const std::filesystem::path& parent, const std::string& name);
  ~HostFolder(); ///< calls leave()
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;

  const std::filesystem::path& path() const {
    return path_;
  }
  /// Gives up the hold; the last one removes the folder.
  void leave();

private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Lock of one file, which processes of a host make once; freed with its
/// owner.
class HostFileLock {
public:
  /// Throws FailureError (io).
  explicit HostFileLock(const std::filesystem::path& file);
  ~HostFileLock();
  HostFileLock(const HostFileLock&) = delete;
  HostFileLock& operator=(const HostFileLock&) = delete;

  /// Returns whether this process has it now.
  bool try_lock();

private:
  int lock_ = -1;
};

} // namespace troupe::actors
