// A call whose samples are led by a user-defined actor: one run on one device
// thread. The first device of each dp replica of the model holds the
// conversations, the others only take part in the forward passes.
#pragma once

#include "actors/user/user_actors.hpp"
#include "actors/worker/shard_actor.hpp"

namespace troupe::models {
struct GenerateOptions;
} // namespace troupe::models

namespace troupe::actors {

/// Runs the conversations of the rows to their end. Returns the rows that the
/// call writes, by the key names of its function; none on devices that only
/// take part. `on_ended`, if set, gets the rows of each as its actor returns
/// it, on another thread. Throws FailureError if a user-defined actor failed.
net::Rows converse(Shard& shard, const UserEntry& user, const net::Rows& rows,
                   const models::GenerateOptions& options,
                   models::RunContext& context,
                   const std::function<void(const net::Rows&)>& on_ended);

} // namespace troupe::actors
