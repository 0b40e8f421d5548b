// SIGTERM and Ctrl-C as an event: the first one calls back on a thread of its
// own (to ask the master for a checkpoint), the second one ends the process at
// once. Handlers, not masks, so that child processes inherit nothing.
#pragma once

#include <functional>
#include <thread>

namespace troupe::runtime {

/// At most one at a time in a process.
class StopSignals {
public:
  /// `on_first` gets SIGTERM or SIGINT; it runs on the watching thread.
  explicit StopSignals(std::function<void(int signal)> on_first);
  ~StopSignals(); ///< restores what was before
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

private:
  std::thread watcher_;
};

} // namespace troupe::runtime
