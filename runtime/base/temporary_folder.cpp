#include "runtime/base/temporary_folder.hpp"

#include "config/base/error.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t num_random_letters = 6;
constexpr int most_tries = 16;

int open_folder(const fs::path& folder) {
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/// Returns whether the open folder is the one of this path.
bool is_at(int folder, const fs::path& path) {
  struct stat opened {
  }, found{};
  return ::fstat(folder, &opened) == 0 && ::stat(path.c_str(), &found) == 0
         && opened.st_ino == found.st_ino && opened.st_dev == found.st_dev;
}

bool is_ours(const fs::directory_entry& entry, const std::string& prefix) {
  const auto name = entry.path().filename().string();
  return name.starts_with(prefix)
         && name.size() == prefix.size() + num_random_letters
         && entry.symlink_status().type() == fs::file_type::directory;
}

/// Folders that cannot be removed (those of other users) are kept.
void remove_ownerless(const fs::path& parent, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (!is_ours(entry, prefix))
      continue;
    const int lock = open_folder(entry.path());
    if (lock < 0)
      continue;
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0)
      fs::remove_all(entry.path(), ignored);
    ::close(lock);
  }
}

} // namespace

TemporaryFolder::TemporaryFolder(const fs::path& parent,
                                 const std::string& prefix) {
  remove_ownerless(parent, prefix);
  // whoever looks for ownerless folders may find one between its creation and
  // its lock; it is then made again. Nobody waits for a lock: a process that is
  // stopped may hold one for ever.
  for (int tries = 0; tries < most_tries; ++tries) {
    path_ = (parent / (prefix + std::string(num_random_letters, 'X'))).string();
    auto name = path_.string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::system_error(errno, std::generic_category());
    path_ = name;
    lock_ = open_folder(path_);
    const bool taken
      = ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && is_at(lock_, path_))
      return;
    ::close(std::exchange(lock_, -1));
  }
  throw std::system_error(EBUSY, std::generic_category());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(lock_);
}

TemporaryFolder scratch_folder(const std::string& prefix) {
  try {
    return {fs::temp_directory_path(), prefix};
  } catch (const std::system_error& error) {
    throw FailureError{{.code = Errc::io,
                        .who = "temporary folder",
                        .what = "TMPDIR or /tmp: " + error.code().message(),
                        .cause = ""}};
  }
}

} // namespace troupe::runtime
