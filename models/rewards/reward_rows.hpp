// Converts the scores of a Rewarder to the key `scores`: several rewards
// weighted into one, errors handled according to `reward.on_error`, and the
// numbers of metrics.
#pragma once

#include "models/rewards/reward.hpp"
#include "models/rl/functions.hpp"

namespace troupe::models {

/// Writes scores f32[1] per sample: the only part, or the sum of
/// `reward.weights` times the parts of these names (a missing part is an
/// error). A sample with an error gets 0 (on_error zero) or NaN (skip: excluded
/// from training). Metrics: reward/NAME/mean of each part, reward/errors,
/// reward/timeouts; an unmatched reply is an error. Throws FailureError if
/// on_error is fail: the first error with its row and sample.
FunctionResult reward_rows(std::vector<SampleId> samples,
                           const std::vector<RewardItem>& items,
                           RewardReplies replies, const Settings& settings);

} // namespace troupe::models
