// A configuration of another RLHF system as a list: key, value and where it is
// written, whatever the file's form. Readers of shell scripts and of YAML make
// such a list (shell_script.hpp, yaml_values.hpp); each system has a source
// that understands its keys.
#pragma once

#include "config/base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::plans {

struct ForeignValue {
  std::string key;   ///< "actor_rollout_ref.rollout.n", "zero_stage"
  std::string value; ///< as text, without quotes; "true" for a flag alone
  Place place;
};

/// Something in a file that its reader could not follow.
struct ForeignNote {
  Place place;
  std::string text;
};

struct ForeignConfig {
  std::vector<ForeignValue> values = {}; ///< of equal keys the last one counts
  std::vector<ForeignNote> notes = {};
  /// Words of commands that tell systems apart: "verl.trainer.main_ppo".
  std::vector<std::string> programs = {};

  /// Returns the value that counts; nullptr: none, or null.
  const ForeignValue* find(std::string_view key) const;
  /// Appends what another file says, which wins.
  void append(ForeignConfig other);
};

} // namespace troupe::plans
