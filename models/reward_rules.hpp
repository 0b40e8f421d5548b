// Built-in checks of an answer's text (`reward.rule`), pure.
//
// exact   the answer is the truth, blanks at the ends aside
// gsm8k   the number behind the last "####" is the truth's (GSM8K; verl's
// strict
//         reading, but 72 is 72.0 and 1,000 is 1000)
// number  the final number: behind the last "####", in the last \boxed{}, or
//         the last one there is
// boxed   what the last \boxed{} holds is the truth, as a number or, blanks and
//         sizes of brackets aside, as a text
// regex   PATTERN, or without one the truth, occurs in the answer
// format  PATTERN is the whole answer; without one <think>..</think> and
//         <answer>..</answer>
// length  1 up to N tokens, then falling to 0 at 2 N
// auto    data_source with "gsm8k": gsm8k; with "math" or "aime": boxed; else a
//         truth with "####": gsm8k; that is a number: number; else exact
#pragma once

#include "config/reward_rule.hpp"
#include "models/reward.hpp"

#include <memory>

namespace troupe::models {

/// The rule that `auto` takes for this row; others stay.
RewardRule chosen_rule(const RewardRule& rule, const RewardItem& item);

/// `reward.rule`, or the names of `reward.weights`. Throws ConfigError for a
/// pattern that is none.
std::unique_ptr<Rewarder> make_rule_rewarder(const Settings& settings);

} // namespace troupe::models
