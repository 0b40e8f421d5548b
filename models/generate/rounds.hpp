// The loop of a generation: rounds of one pass through each model, on one
// thread. The models of a conversation take turns, so none of them may wait for
// another to be done: between its rounds a model without work passes nothing.
#pragma once

#include "models/generate/rollout.hpp"
#include "models/generate/turn_feed.hpp"

#include <memory>
#include <span>

namespace troupe::models::internal {

/// Runs rounds until all turns have ended and no more may arrive through the
/// feed. A turn goes to the rollout with its speaker's index. Throws
/// FailureError{bad_input} for one of a speaker that is not there.
void run_rounds(std::span<const std::unique_ptr<Rollout>> speakers,
                TurnFeed feed, const RunContext& context);

} // namespace troupe::models::internal
