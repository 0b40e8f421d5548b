// SIGTSTP (Ctrl-Z, Slurm before it suspends a job) as a question that the
// session asks now and then: the master's workers are in process groups of
// their own, so a master that stopped alone would leave them waiting for it.
// SIGCONT takes a SIGTSTP back: a job that was stopped and woken before the
// session asked must not stop itself afterwards, since nobody would wake it.
#pragma once

#include <csignal>
#include <functional>

namespace troupe::runtime {

/// At most one at a time in a process.
class SuspendSignal {
public:
  SuspendSignal();
  ~SuspendSignal(); ///< restores the handlers of before
  SuspendSignal(const SuspendSignal&) = delete;
  SuspendSignal& operator=(const SuspendSignal&) = delete;

  /// Whether SIGTSTP came and no SIGCONT after it. Asking changes nothing.
  bool came() const;
  /// This process and its workers stop and go on together. Workers of other
  /// hosts go on meanwhile, and end when the master has been silent for too
  /// long. `signal_workers` sends a signal to all workers.
  void suspend(const std::function<void(int signal)>& signal_workers);

private:
  struct sigaction before_suspend_ {};
  struct sigaction before_continue_ {};
};

} // namespace troupe::runtime
