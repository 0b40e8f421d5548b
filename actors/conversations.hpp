// A call whose samples are led by an own actor: one run on one device thread.
// The first device of each copy of the model has the conversations, the others
// only go along.
#pragma once

#include "actors/own_actors.hpp"
#include "actors/shard_actor.hpp"

namespace troupe::models {
struct GenerateOptions;
} // namespace troupe::models

namespace troupe::actors {

/// Leads the conversations of the rows to their end. The rows that the call
/// writes, by the names of its function; none on devices that only go along.
/// `on_ended`, if it is there, sees those of each as its actor gives it back,
/// on another thread. Throws FailureError where an own actor failed.
net::Rows converse(Shard& shard, const OwnEntry& own, const net::Rows& rows,
                   const models::GenerateOptions& options,
                   models::RunContext& context,
                   const std::function<void(const net::Rows&)>& on_ended);

} // namespace troupe::actors
