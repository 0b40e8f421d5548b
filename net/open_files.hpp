// How many files and sockets this process may have open. Shells and batch
// systems give 1,024 by default and allow more: programs that use epoll, as
// ours, may take what is allowed (RLIMIT_NOFILE, `ulimit -n`).
#pragma once

#include "config/error.hpp"

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace troupe::net {

/// Raises the soft limit to the hard one: first thing in every process.
void raise_open_file_limit() noexcept;
/// The limits as they were before, for programs of others that we start: some
/// use select(), or close every possible number.
rlimit first_open_file_limit() noexcept;
/// The soft limit now.
std::uint64_t open_file_limit() noexcept;

/// Why no further file or socket can be opened, with the limit in numbers;
/// nothing where one can.
std::optional<std::string> why_no_open_file();

/// For loops that come by often: looks at most once in a heartbeat. A process
/// that stays without a free descriptor must end and say so: CAF would try to
/// accept a waiting connection again and again, and nothing else can begin.
class OpenFilesWatch {
public:
  using Clock = std::chrono::steady_clock;

  /// A failure once all looks in `defaults::open_files_full_for` found none.
  std::optional<Failure> look(const std::string& who,
                              Clock::time_point now = Clock::now());

private:
  Clock::time_point next_{};
  int num_full_ = 0; ///< looks in a row that found none
};

} // namespace troupe::net
