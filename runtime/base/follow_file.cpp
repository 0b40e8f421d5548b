#include "runtime/base/follow_file.hpp"

#include "config/base/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace troupe::runtime {

namespace {

/// Lets a reader also notice that the run has ended.
constexpr int follow_wait_ms = 500;

} // namespace

FollowFile::FollowFile(const std::filesystem::path& path)
  : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0)
    throw ConfigError({.place = {path.string(), 0},
                       .path = "",
                       .expected = "a readable log",
                       .got = std::strerror(errno),
                       .hint = "`troupe status` for the run's workers"});
  notify_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (notify_ >= 0)
    ::inotify_add_watch(notify_, path.c_str(), IN_MODIFY);
}

FollowFile::~FollowFile() {
  ::close(file_);
  if (notify_ >= 0)
    ::close(notify_);
}

std::string FollowFile::read_new() {
  std::string text;
  std::array<char, 1 << 16> part{};
  for (;;) {
    const auto count = ::read(file_, part.data(), part.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

void FollowFile::wait() {
  pollfd waited{notify_, POLLIN, 0};
  ::poll(&waited, 1, follow_wait_ms); // a negative descriptor just waits
  std::array<char, 4096> events{};
  while (notify_ >= 0 && ::read(notify_, events.data(), events.size()) > 0) {
  }
}

} // namespace troupe::runtime
