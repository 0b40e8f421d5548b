// That a run makes no sequence longer than its models were made for:
// `max_position_embeddings` of config.json, times the factor of linear rope
// scaling. Rotary positions beyond that compute, but the model has never seen
// them, so its answers and log-probabilities are worth nothing there.
#pragma once

#include "runtime/session_inputs.hpp"

namespace troupe::models {
class Dataset;
}

namespace troupe::runtime {

/// Checks the lengths that the settings allow, before any row is read:
/// prompt and answer of rollouts, whole sequences elsewhere. The default limit
/// of rows does not count, since all of them may be shorter. ConfigError at the
/// setting.
void check_allowed_lengths(const Settings& settings,
                           const plans::Workflow& workflow,
                           const RoleShapes& shapes);

/// Checks the longest row that there is, with an answer of
/// rollout.max_new_tokens behind it where the workflow generates. ConfigError
/// at the row.
void check_row_lengths(const Settings& settings,
                       const plans::Workflow& workflow,
                       const RoleShapes& shapes,
                       const models::Dataset& dataset);

} // namespace troupe::runtime
