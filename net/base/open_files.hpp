// Limit of open files and sockets of this process. Shells and batch systems set
// 1,024 by default and allow more: programs that use epoll, such as ours, may
// use all that is allowed (RLIMIT_NOFILE, `ulimit -n`).
#pragma once

#include "config/base/error.hpp"

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace troupe::net {

/// Raises the soft limit to the hard one; called first in every process.
void raise_open_file_limit() noexcept;
/// Returns the limits before raising, for foreign programs that we start: some
/// use select(), or close every possible number.
rlimit first_open_file_limit() noexcept;
/// Returns the current soft limit.
std::uint64_t open_file_limit() noexcept;

/// Returns why no further file or socket can be opened, with the limit in
/// numbers; nullopt if one can.
std::optional<std::string> why_no_open_file();

/// Check for loops that run often: probes at most once per heartbeat. A process
/// that remains without a free descriptor must end with a message: CAF would
/// try to accept a waiting connection again and again, and nothing else can
/// start.
class OpenFilesWatch {
public:
  using Clock = std::chrono::steady_clock;

  /// Returns a failure once all probes within `defaults::open_files_full_for`
  /// found no free descriptor.
  std::optional<Failure> look(const std::string& who,
                              Clock::time_point now = Clock::now());

private:
  Clock::time_point next_{};
  int num_full_ = 0; ///< consecutive probes without a free one
};

} // namespace troupe::net
