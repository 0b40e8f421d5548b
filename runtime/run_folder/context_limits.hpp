// Checks that a run makes no sequence longer than its models were made for:
// `max_position_embeddings` of config.json, times the factor of linear rope
// scaling. Rotary positions beyond that compute, but the model has never seen
// them, so its responses and log-probabilities are worthless there.
#pragma once

#include "runtime/run_folder/session_inputs.hpp"

namespace troupe::models {
class Dataset;
}

namespace troupe::runtime {

/// Checks the lengths that the settings allow, before any row is read: prompt
/// and response of rollouts, whole sequences elsewhere. The default limit of
/// rows does not count, since all of them may be shorter. Throws ConfigError at
/// the setting.
void check_allowed_lengths(const Settings& settings,
                           const plans::Workflow& workflow,
                           const RoleShapes& shapes);

/// Checks the longest row of the data, with a response of
/// rollout.max_new_tokens appended if the workflow generates. Throws
/// ConfigError at the row.
void check_row_lengths(const Settings& settings,
                       const plans::Workflow& workflow,
                       const RoleShapes& shapes,
                       const models::Dataset& dataset);

/// Checks the longest row of texts that `role` is trained on as they are.
/// Throws ConfigError at the row.
void check_whole_rows(const ModelShape& shape, const std::string& role,
                      const models::Dataset& dataset);

} // namespace troupe::runtime
