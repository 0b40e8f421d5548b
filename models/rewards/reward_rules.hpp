// Built-in checks of a response's text (`reward.rule`), pure.
//
// exact   the response is the truth, ignoring blanks at the ends
// gsm8k   the number after the last "####" is the truth's (GSM8K; verl's strict
//         reading, but 72 is 72.0 and 1,000 is 1000)
// number  the final number: after the last "####", in the last \boxed{}, or
//         the last one in the text
// boxed   the content of the last \boxed{} is the truth, as a number or as a
//         text, ignoring blanks and sizes of brackets
// regex   PATTERN, or without one the truth, occurs in the response
// format  PATTERN matches the whole response; the default is
//         <think>...</think> and <answer>...</answer>
// length  1 up to N tokens, then falling to 0 at 2 N
// auto    data_source with "gsm8k": gsm8k; with "math" or "aime": boxed; else a
//         truth with "####": gsm8k; that is a number: number; else exact
#pragma once

#include "config/settings/reward_rule.hpp"
#include "models/rewards/reward.hpp"

#include <memory>

namespace troupe::models {

/// Returns the rule that `auto` selects for this row; others are unchanged.
RewardRule chosen_rule(const RewardRule& rule, const RewardItem& item);

/// Creates the Rewarder of `reward.rule`, or of the names of `reward.weights`.
/// Throws ConfigError for an invalid pattern.
std::unique_ptr<Rewarder> make_rule_rewarder(const Settings& settings);

} // namespace troupe::models
