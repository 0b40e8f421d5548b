#include "net/base/open_files.hpp"

#include "config/base/defaults.hpp"
#include "net/base/descriptor.hpp"

#include <fcntl.h>

#include <cerrno>

namespace troupe::net {

namespace {

rlimit limit_now() noexcept {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

/// Number of probes, one per heartbeat, that span that time. They are counted
/// because a process that was stopped makes few probes in a long time.
constexpr int full_looks
  = static_cast<int>(defaults::open_files_full_for / defaults::heartbeat_period)
    + 1;

/// Written before there are other threads.
std::optional<rlimit> limit_before_raising;

} // namespace

void raise_open_file_limit() noexcept {
  rlimit limit = limit_now();
  limit_before_raising = limit;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit); // if it fails, the limit stays
}

rlimit first_open_file_limit() noexcept {
  return limit_before_raising.value_or(limit_now());
}

std::uint64_t open_file_limit() noexcept {
  return limit_now().rlim_cur;
}

std::optional<std::string> why_no_open_file() {
  const Descriptor any{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (any.get() >= 0 || (errno != EMFILE && errno != ENFILE))
    return std::nullopt;
  if (errno == ENFILE)
    return "the whole host has as many files open as it may (sysctl "
           "fs.file-max)";
  return "too many open files: this process has all "
         + std::to_string(open_file_limit())
         + " open that it may (ulimit -n); raise the limit, or use fewer "
           "workers with more devices each";
}

std::optional<Failure> OpenFilesWatch::look(const std::string& who,
                                            Clock::time_point now) {
  if (now < next_)
    return std::nullopt;
  next_ = now + defaults::heartbeat_period;
  const auto why = why_no_open_file();
  num_full_ = why ? num_full_ + 1 : 0;
  if (num_full_ < full_looks)
    return std::nullopt;
  return Failure{.code = Errc::io, .who = who, .what = *why, .cause = ""};
}

} // namespace troupe::net
