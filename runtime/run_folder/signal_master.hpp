// Signals the master of a run. A run folder may be anybody's, and so may the
// number in its status.json: only a process that has the run's lock is its
// master.
#pragma once

#include "runtime/run_folder/run_folder.hpp"

#include <cstdint>

namespace troupe::runtime {

/// Sends `signal` to `pid`, which status.json names. Throws ConfigError if that
/// process does not have the run's lock, FailureError if it must not be
/// signaled.
void signal_master(const RunFolder& folder, std::int64_t pid, int signal);

} // namespace troupe::runtime
