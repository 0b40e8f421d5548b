// A generate call whose samples are led by programs from outside: one run on
// one device thread, which answers the turns that the sessions ask for. The
// first device of each dp replica of the model holds the sessions, the others
// only take part in the forward passes.
#pragma once

#include "actors/worker/shard_actor.hpp"
#include "models/rl/metric_sums.hpp"

namespace troupe::models {
struct GenerateOptions;
} // namespace troupe::models

namespace troupe::actors {

/// Returns whether agents.command leads the call's samples.
bool is_led_by_agents(const plans::Call& call);

/// Runs the sessions of the rows to their end. Returns the rows that the call
/// writes, by the key names of its function; none on devices that only take
/// part. `on_ended`, if set, gets the rows of each as it ends, on another
/// thread. Throws FailureError if a session failed and reward.on_error is
/// fail.
net::Rows converse_with_agents(
  Shard& shard, const plans::Call& call, const net::Rows& rows,
  const models::GenerateOptions& options, models::RunContext& context,
  const std::function<void(const net::Rows&)>& on_ended);

/// Adds what metrics tell of the sessions that ended since.
void add_agent_sums(WorkerContext& worker, models::MetricSums& sums);

} // namespace troupe::actors
