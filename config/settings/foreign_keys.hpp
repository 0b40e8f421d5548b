// Names of other RLHF systems' settings, mapped to ours, so that unknown keys
// copied from verl, OpenRLHF or TRL get a useful message. One table and one
// source per system.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace troupe {

struct Translation {
  const char* system; ///< "verl"; "": several systems
  const char* theirs; ///< "actor_rollout_ref.rollout.n", "init_kl_coef"
  /// Our key, perhaps followed by a value or a remark; or advice if there is no
  /// such key.
  const char* ours;
};

std::span<const Translation> verl_translations();
std::span<const Translation> openrlhf_translations();
std::span<const Translation> trl_translations();

/// Returns the translations of the whole `key`; dashes count as underscores.
/// Several if a name has another meaning in another workflow.
std::vector<const Translation*> find_translations(const std::string& key);
/// Returns translations by the last part of `key`, among foreign names without
/// dots; none in a section that only verl has. The caller checks whether `key`
/// is in a section of ours, where few of them apply.
std::vector<const Translation*>
find_translations_by_last_part(const std::string& key);
/// Returns our setting at the start of a translation; "" for mere advice.
std::string key_of(const Translation& translation);

} // namespace troupe
