#include "actors/worker_base/host_folder.hpp"

#include "config/base/error.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

constexpr const char* host_folder_prefix = "troupe-files-";
constexpr int most_entries = 16;

[[noreturn]] void fail_host_folder(const fs::path& path, int error) {
  throw FailureError{{.code = Errc::io,
                      .who = "temporary folder",
                      .what = path.string() + ": " + std::strerror(error),
                      .cause = ""}};
}

int open_host_folder(const fs::path& folder) {
  return ::open(folder.c_str(),
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/// Returns whether the open folder is the one of this path, and ours.
bool is_our_folder_at(int folder, const fs::path& path) {
  struct stat opened {
  }, found{};
  return ::fstat(folder, &opened) == 0 && ::stat(path.c_str(), &found) == 0
         && opened.st_ino == found.st_ino && opened.st_dev == found.st_dev
         && opened.st_uid == ::geteuid();
}

/// Removes a folder that nobody holds; whoever holds `lock` shared gives it up.
void remove_if_last(int lock, const fs::path& folder) {
  std::error_code ignored; // another user's
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0 && is_our_folder_at(lock, folder))
    fs::remove_all(folder, ignored);
}

void remove_those_without_holder(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().string().starts_with(host_folder_prefix))
      continue;
    const int lock = open_host_folder(entry.path());
    if (lock < 0)
      continue;
    remove_if_last(lock, entry.path());
    ::close(lock);
  }
}

} // namespace

HostFolder::HostFolder(const fs::path& parent, const std::string& name)
  : path_(parent / (host_folder_prefix + name)) {
  remove_those_without_holder(parent);
  // it may be removed between its creation and its lock: then once more
  for (int tries = 0; tries < most_entries; ++tries) {
    if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST)
      fail_host_folder(path_, errno);
    lock_ = open_host_folder(path_);
    if (lock_ < 0 && errno != ENOENT)
      fail_host_folder(path_, errno);
    if (lock_ >= 0 && ::flock(lock_, LOCK_SH | LOCK_NB) == 0
        && is_our_folder_at(lock_, path_))
      return;
    if (lock_ >= 0)
      ::close(std::exchange(lock_, -1));
  }
  fail_host_folder(path_, EBUSY);
}

HostFolder::~HostFolder() {
  leave();
}

void HostFolder::leave() {
  if (lock_ < 0)
    return;
  remove_if_last(lock_, path_);
  ::close(std::exchange(lock_, -1));
}

HostFileLock::HostFileLock(const fs::path& file)
  : lock_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  if (lock_ < 0)
    fail_host_folder(file, errno);
}

HostFileLock::~HostFileLock() {
  ::close(lock_);
}

bool HostFileLock::try_lock() {
  return ::flock(lock_, LOCK_EX | LOCK_NB) == 0;
}

} // namespace troupe::actors
