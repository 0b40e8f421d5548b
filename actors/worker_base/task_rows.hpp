// The rows of one task on a worker: keys renamed on the way into a call's
// function and out of it, results stored for the calls that follow.
#pragma once

#include "actors/worker_base/worker_context.hpp"

#include <string_view>

namespace troupe::actors {

/// Renames keys to those of the call's function, and back (plans::Rename).
net::Rows rename_in(const plans::Call& call, net::Rows rows);
net::Rows rename_out(const plans::Call& call, net::Rows rows);
/// Stores the outputs of a finished call in the stash and returns what was
/// written.
RunDone stash_outputs(WorkerContext& worker, StepId step,
                      const plans::Call& call, net::Rows outputs);
/// Adds what a task `reads` or `writes` to the trace, inside the task's slice:
/// a slice of zero length per key, whose amount is bytes.
void trace_rows(trace::Track track, std::string_view what, StepId step,
                const net::Rows& rows);

} // namespace troupe::actors
