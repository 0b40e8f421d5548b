#include "runtime/temporary_folder.hpp"

#include "config/error.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t num_random_letters = 6;

int open_folder(const fs::path& folder) {
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool is_ours(const fs::directory_entry& entry, const std::string& prefix) {
  const auto name = entry.path().filename().string();
  return name.starts_with(prefix)
         && name.size() == prefix.size() + num_random_letters
         && entry.symlink_status().type() == fs::file_type::directory;
}

/// What cannot be removed (somebody else's) stays.
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
  // nobody looks for folders without an owner between making and locking one
  const int guard = open_folder(parent);
  while (guard >= 0 && ::flock(guard, LOCK_EX) != 0 && errno == EINTR) {
  }
  remove_ownerless(parent, prefix);
  auto name
    = (parent / (prefix + std::string(num_random_letters, 'X'))).string();
  const char* made = ::mkdtemp(name.data());
  const int error = errno;
  if (made != nullptr) {
    path_ = name;
    lock_ = open_folder(path_);
    ::flock(lock_, LOCK_EX);
  }
  ::close(guard);
  if (made == nullptr)
    throw std::system_error(error, std::generic_category());
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
