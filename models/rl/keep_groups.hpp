// Dynamic sampling: which groups of a round a step goes on with. A group whose
// responses all have one reward has advantages of 0 and teaches nothing, so
// groups of later rounds take its place.
//
// Source: DAPO, Yu et al. 2025 (arXiv 2503.14476), section 3.2, equation 11.
#pragma once

#include "models/rl/functions.hpp"

namespace troupe::models {

/// Reads the scores of a round's samples; groups are consecutive and whole.
/// Returns the samples of the groups that have different rewards, in their
/// order, no more than data.batch_size groups in the step's rounds together:
/// `kept_groups` is carried from round to round and begins with the step's
/// first sample. Rewards that are less than 1e-6 apart count as equal, those of
/// samples without one are not compared.
///
/// Metrics: rollout/rounds, rollout/groups_alike (rewards are equal),
/// rollout/groups_beyond (the batch was full).
FunctionResult keep_groups(const net::Rows& rows,
                           const FunctionContext& context);
FunctionEntry keep_groups_entry();

} // namespace troupe::models
