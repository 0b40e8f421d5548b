// Words of `reward.rule`: a built-in check of an answer, with an argument
// behind a colon where it takes one ("regex:PATTERN", "length:200").
#pragma once

#include "config/error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

enum class RuleKind : std::uint8_t {
  automatic, ///< "auto": by data_source and ground_truth
  exact,     ///< the answer is the truth
  gsm8k,     ///< the number behind the last "####" is the truth's
  number,    ///< the answer's final number, however it is written
  boxed,     ///< the content of the last \boxed{} is the truth
  regex,     ///< the pattern occurs in the answer
  format,    ///< the pattern is the whole answer
  length,    ///< at most so many tokens
};

struct RewardRule {
  RuleKind kind = RuleKind::automatic;
  std::string name;     ///< "regex"
  std::string argument; ///< "" where none was given
};

/// Throws ConfigError at `place` about `path`: an unknown rule with the nearest
/// one, an argument that is missing, not a number, or not taken.
RewardRule parse_reward_rule(const std::string& text, const Place& place,
                             const std::string& path);

} // namespace troupe
