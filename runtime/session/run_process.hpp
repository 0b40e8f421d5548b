// The state of a run's master process that all its attempts share: the signals
// that stop or suspend it, its limit of open files, the time since it began,
// and spare workers.
#pragma once

#include "net/base/open_files.hpp"
#include "runtime/base/suspend_signal.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/launch/stop_signals.hpp"
#include "runtime/session/session_clock.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::runtime {

class RunProcess {
public:
  /// Returns the first signal that asked the run to stop.
  std::optional<int> stop_signal() const {
    const int signal = signal_.load();
    return signal == 0 ? std::nullopt : std::optional(signal);
  }

  /// Waits for so long, or until a signal asks the run to stop.
  void wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    signalled_.wait_for(lock, time, [this] { return signal_ != 0; });
  }

  SuspendSignal suspend;
  net::OpenFilesWatch open_files;
  SessionClock clock;
  std::unique_ptr<Launcher> next_launcher; ///< with spares; null: none yet

private:
  void take(int signal) {
    const std::lock_guard lock(mutex_);
    signal_ = signal;
    signalled_.notify_all();
  }

  std::mutex mutex_; ///< of the wait
  std::condition_variable signalled_;
  std::atomic<int> signal_ = 0;
  StopSignals signals_{[this](int signal) { take(signal); }};
};

} // namespace troupe::runtime
