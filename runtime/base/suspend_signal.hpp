// SIGTSTP (Ctrl-Z, Slurm before it suspends a job) as a flag that the session
// polls: the master's workers are in process groups of their own, so a master
// that stopped alone would leave them waiting for it. SIGCONT cancels a
// SIGTSTP: a job that was stopped and continued before the session polled must
// not stop itself afterwards, since nothing would continue it.
#pragma once

#include <csignal>
#include <functional>

namespace troupe::runtime {

/// Polls for SIGTSTP; at most one object at a time in a process.
class SuspendSignal {
public:
  SuspendSignal();
  ~SuspendSignal(); ///< restores the previous handlers
  SuspendSignal(const SuspendSignal&) = delete;
  SuspendSignal& operator=(const SuspendSignal&) = delete;

  /// Returns whether SIGTSTP arrived and no SIGCONT after it. Does not clear
  /// it.
  bool came() const;
  /// Stops this process and its workers, and continues them together. Workers
  /// of other hosts keep running meanwhile, and end when the master has been
  /// silent for too long. `signal_workers` sends a signal to all workers.
  void suspend(const std::function<void(int signal)>& signal_workers);

private:
  struct sigaction before_suspend_ {};
  struct sigaction before_continue_ {};
};

} // namespace troupe::runtime
