// Names of other RLHF systems' settings here, so that unknown keys copied from
// verl, OpenRLHF or TRL get a useful answer. One table and one source per
// system.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace troupe {

struct Translation {
  const char* system; ///< "verl"; "": several have it
  const char* theirs; ///< "actor_rollout_ref.rollout.n", "init_kl_coef"
  /// A key of ours, perhaps with a value or words after it; or advice where
  /// there is no such key.
  const char* ours;
};

std::span<const Translation> verl_translations();
std::span<const Translation> openrlhf_translations();
std::span<const Translation> trl_translations();

/// The translations of the whole `key`; dashes count as underscores. Several
/// where a name means something else in another workflow.
std::vector<const Translation*> find_translations(const std::string& key);
/// The same by the last part of `key`, of theirs that have no dots: none in a
/// section that only verl has. Whether `key` stands in a section of ours, where
/// few of them are meant, is the caller's to know.
std::vector<const Translation*>
find_translations_by_last_part(const std::string& key);
/// The setting of ours that a translation begins with; "" of mere advice.
std::string key_of(const Translation& translation);

} // namespace troupe
