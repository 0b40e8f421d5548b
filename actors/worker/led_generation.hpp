// A call whose samples are led by a user-defined actor: one run on one device
// thread. The first device of each dp replica of the model holds the
// conversations, the others only take part in the forward passes.
#pragma once

#include "actors/user/user_actors.hpp"
#include "actors/worker/led_run.hpp"

namespace troupe::actors {

/// Runs the conversations to their end. Returns the rows that the call writes,
/// by the key names of its function; none on devices that only take part.
/// Throws FailureError if a user-defined actor failed.
net::Rows converse(Shard& shard, const UserEntry& user, const LedRun& run);

} // namespace troupe::actors
