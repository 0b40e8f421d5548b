// SIGTSTP (Ctrl-Z, Slurm before it suspends a job) as a question that the
// session asks now and then: the master's workers are in process groups of
// their own, so a master that stopped alone would leave them waiting for it.
#pragma once

#include <csignal>

namespace troupe::runtime {

/// At most one at a time in a process.
class SuspendSignal {
public:
  SuspendSignal();
  ~SuspendSignal(); ///< restores what was before
  SuspendSignal(const SuspendSignal&) = delete;
  SuspendSignal& operator=(const SuspendSignal&) = delete;

  /// Whether the signal came since the last time that this was asked.
  bool came();

private:
  struct sigaction before_ {};
};

/// Stops this process until somebody sends it SIGCONT.
void stop_this_process();

} // namespace troupe::runtime
