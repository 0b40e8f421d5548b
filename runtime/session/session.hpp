// A run from start to end in the master process, as a sequence of attempts:
// each ends with its workers, and after a failure that may pass the next one
// continues from the newest checkpoint (plans/recovery decides). Page, metrics,
// signals and the right to the run folder stay.
#pragma once

#include "config/base/error.hpp"
#include "runtime/prepare/prepared_run.hpp"

namespace troupe::runtime {

/// Runs the plan to its end; `run` becomes that of its last attempt. Done 0,
/// failed 1, stopped 75, Ctrl-C 130.
ExitCode run_session(PreparedRun& run);

} // namespace troupe::runtime
