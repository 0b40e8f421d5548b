// Lists the settings of a run that differ from its workflow's defaults: the few
// lines that people want to see before it starts.
#pragma once

#include "config/settings.hpp"

#include <string>
#include <vector>

namespace troupe {

struct ChangedSetting {
  std::string path;         ///< "rollout.n"
  std::string value;        ///< as a user would write it
  std::string default_text; ///< of the workflow; "" where there is none
};

/// The settings that the user wrote with another value than the workflow's
/// default, in table order and those of models behind them.
std::vector<ChangedSetting> changed_settings(const Settings& settings);

} // namespace troupe
