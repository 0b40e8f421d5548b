#include "runtime/base/last_resort.hpp"

#include "config/base/awake_clock.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace troupe::runtime {

namespace {

/// A condition variable waits by a clock that continues while the process is
/// stopped, so it waits in slices and AwakeClock is checked after each.
constexpr AwakeClock::duration longest_slice = std::chrono::milliseconds{100};

} // namespace

LastResort::~LastResort() {
  if (!watcher_.joinable())
    return;
  {
    const std::lock_guard lock{mutex_};
    ended_ = true;
  }
  changed_.notify_one();
  watcher_.join();
}

void LastResort::arm(std::chrono::milliseconds limit, ExitCode code) {
  TROUPE_CHECK(!watcher_.joinable(), "armed once");
  watcher_ = std::thread([this, limit, code] {
    const auto end = AwakeClock::now() + limit;
    std::unique_lock lock{mutex_};
    while (!ended_ && AwakeClock::now() < end)
      changed_.wait_for(lock, std::min(end - AwakeClock::now(), longest_slice));
    if (ended_)
      return;
    // not through the log, which may be what hangs
    const auto text
      = fmt::format("error: {}: did not end within {:.1f} s of being told to\n",
                    who_, std::chrono::duration<double>(limit).count());
    [[maybe_unused]] const auto written
      = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(static_cast<int>(code));
  });
}

} // namespace troupe::runtime
