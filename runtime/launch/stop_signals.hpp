// SIGTERM and Ctrl-C as an event: the first one calls back on a thread of its
// SIGTERM and Ctrl-C as an event: the first one calls back on a thread of its
// own (to request a checkpoint from the master), a second one ends the process
// at once, but for a SIGTERM within a second of the first: schedulers signal a
// job's shell, which passes it on, and all its processes. SIGHUP, which a
// closed terminal sends, is as SIGTERM unless it was ignored at the start
// (nohup). Handlers, not masks, so that child processes inherit nothing.
#pragma once

#include <functional>
#include <thread>

namespace troupe::runtime {

/// Watches for signals; at most one object at a time in a process.
class StopSignals {
public:
  /// `on_first` gets SIGTERM or SIGINT; it runs on the watching thread.
  explicit StopSignals(std::function<void(int signal)> on_first);
  ~StopSignals(); ///< restores the previous handlers
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

private:
  std::thread watcher_;
};

/// Lets this process live after SIGTERM, as a worker does: schedulers signal
/// all processes of a job, and its master needs them to save a checkpoint.
void leave_term_to_master();

} // namespace troupe::runtime
