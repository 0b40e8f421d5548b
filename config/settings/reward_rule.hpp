// Values of `reward.rule`: a built-in check of a response, with an argument
// after a colon if it takes one ("regex:PATTERN", "length:200").
#pragma once

#include "config/base/error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

enum class RuleKind : std::uint8_t {
  automatic, ///< "auto": by data_source and ground_truth
  exact,     ///< the response equals the truth
  gsm8k,     ///< the number after the last "####" is the truth's
  number,    ///< the response's final number, in any notation
  boxed,     ///< the content of the last \boxed{} is the truth
  regex,     ///< the pattern occurs in the response
  format,    ///< the pattern matches the whole response
  length,    ///< at most this many tokens
};

struct RewardRule {
  RuleKind kind = RuleKind::automatic;
  std::string name;     ///< "regex"
  std::string argument; ///< "" if none is given
};

/// Parses a rule. Throws ConfigError at `place` about `path`: an unknown rule
/// with the nearest one, or an argument that is missing, not a number, or not
/// accepted.
RewardRule parse_reward_rule(const std::string& text, const Place& place,
                             const std::string& path);

} // namespace troupe
