// What settings of other RLHF systems are called here, so that an unknown key
// copied from verl, OpenRLHF or TRL gets a useful answer.
#pragma once

#include <string>

namespace troupe {

struct Translation {
  const char* system; ///< "verl"
  const char* theirs; ///< "actor_rollout_ref.rollout.n", "init_kl_coef"
  const char* ours;   ///< a key of ours, or a few words of advice
};

/// The translation of `key`, whole or (keys without dots) by its last part;
/// dashes count as underscores. nullptr if there is none.
const Translation* find_translation(const std::string& key);

} // namespace troupe
