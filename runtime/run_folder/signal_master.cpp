#include "runtime/run_folder/signal_master.hpp"

#include "config/base/error.hpp"
#include "net/base/descriptor.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>

namespace troupe::runtime {

namespace {

namespace fs = std::filesystem;

/// Returns whether the process has this file open.
bool has_open(std::int64_t pid, const struct stat& file) {
  std::error_code none;
  fs::directory_iterator descriptor(fmt::format("/proc/{}/fd", pid), none);
  for (; !none && descriptor != fs::directory_iterator();
       descriptor.increment(none)) {
    struct stat open {};
    if (::stat(descriptor->path().c_str(), &open) == 0
        && open.st_dev == file.st_dev && open.st_ino == file.st_ino)
      return true;
  }
  return false;
}

} // namespace

void signal_master(const RunFolder& folder, std::int64_t pid, int signal) {
  const bool possible = pid > 1 && pid <= std::numeric_limits<pid_t>::max();
  // held from before the check: a number may become another process's
  const net::Descriptor process{
    possible ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1};
  struct stat lock {};
  if (process.get() < 0 || ::stat(folder.lock_file().c_str(), &lock) != 0
      || !has_open(pid, lock))
    throw ConfigError(
      {.place = {folder.status_file().string(), 0},
       .path = "pid",
       .expected = "the master of this run",
       .got = fmt::format("{}, a process that does not have its lock", pid),
       .hint = fmt::format("`fuser {}`, which names the master",
                           folder.lock_file().string())});
  if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) != 0)
    throw FailureError(
      {.code = Errc::io,
       .who = fmt::format("master (pid {})", pid),
       .what = fmt::format("cannot be asked to stop: {}", std::strerror(errno)),
       .cause = ""});
}

} // namespace troupe::runtime
