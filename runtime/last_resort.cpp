#include "runtime/last_resort.hpp"

#include "config/error.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace troupe::runtime {

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

void LastResort::arm(std::chrono::milliseconds limit) {
  TROUPE_CHECK(!watcher_.joinable(), "armed once");
  watcher_ = std::thread([this, limit] {
    std::unique_lock lock{mutex_};
    if (changed_.wait_for(lock, limit, [this] { return ended_; }))
      return;
    // not through the log, which may be what hangs
    const auto text
      = fmt::format("error: {}: did not end within {:.1f} s of being told to\n",
                    who_, std::chrono::duration<double>(limit).count());
    [[maybe_unused]] const auto written
      = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(static_cast<int>(ExitCode::failed));
  });
}

} // namespace troupe::runtime
