// A generate call whose samples are led by programs from outside: one run on
// one device thread, which answers the turns that the sessions ask for. The
// first device of each dp replica of the model holds the sessions, the others
// only take part in the forward passes.
#pragma once

#include "actors/worker/led_run.hpp"
#include "models/rl/metric_sums.hpp"

namespace troupe::actors {

/// Returns whether agents.command leads the call's samples.
bool is_led_by_agents(const plans::Call& call);

/// Runs the sessions to their end. Returns the rows that the call writes, by
/// the key names of its function; none on devices that only take part. Throws
/// FailureError if a session failed and reward.on_error is fail.
net::Rows converse_with_agents(Shard& shard, const LedRun& run);

/// Adds what metrics tell of the sessions that ended since.
void add_agent_sums(WorkerContext& worker, models::MetricSums& sums);

} // namespace troupe::actors
