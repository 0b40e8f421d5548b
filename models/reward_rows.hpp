// From what a Rewarder said to the key `scores`: several rewards weighed into
// one, troubles treated as `reward.on_error` says, and the numbers of metrics.
#pragma once

#include "models/functions.hpp"
#include "models/reward.hpp"

namespace troupe::models {

/// Writes scores f32[1] a sample: the only part, or the sum of `reward.weights`
/// times the parts of these names (a part that is missing is a trouble). A
/// sample in trouble gets 0 (on_error zero) or NaN (skip: it is left out of
/// training). Metrics: reward/NAME/mean of each part, reward/errors,
/// reward/timeouts; a stray answer is an error. Throws FailureError where
/// on_error is fail: the first trouble with its row and sample.
FunctionResult reward_rows(std::vector<SampleId> samples,
                           const std::vector<RewardItem>& items,
                           RewardAnswers answers, const Settings& settings);

} // namespace troupe::models
