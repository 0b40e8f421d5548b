// Lists the settings of a run that differ from its workflow's defaults: the few
// lines that users want to see before it starts.
#pragma once

#include "config/settings/settings.hpp"

#include <string>
#include <vector>

namespace troupe {

struct ChangedSetting {
  std::string path;         ///< "rollout.n"
  std::string value;        ///< as a user would write it
  std::string default_text; ///< workflow's default; "" if none
};

/// Returns the settings that the user set to a value other than the workflow's
/// default, in table order, those of models last.
std::vector<ChangedSetting> changed_settings(const Settings& settings);

} // namespace troupe
