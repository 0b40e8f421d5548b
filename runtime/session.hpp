// One run from start to end in the master process: starts workers, brings the
// actors up, watches signals, processes and the master, keeps status, metrics
// and failures, and leaves nothing behind.
//
//   start workers -> all joined -> shards loaded -> steps ... -> end
//        any child exit, lost worker, signal or time limit on the way
#pragma once

#include "config/error.hpp"
#include "runtime/session_plan.hpp"

namespace troupe::runtime {

/// Runs the plan to its end. Done 0, failed 1, stopped 75, Ctrl-C 130.
ExitCode run_session(const SessionPlan& session);

} // namespace troupe::runtime
