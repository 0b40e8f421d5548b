// Who scores where no model does (`reward.kind`).
#pragma once

#include "models/reward.hpp"

#include <filesystem>
#include <memory>

namespace troupe::models {

/// The Rewarder that the settings ask for; programs write what they say on
/// stderr below `run_folder`/logs. Throws ConfigError for what can be seen to
/// be wrong before anything is scored, so calling it checks the settings.
std::unique_ptr<Rewarder>
make_rewarder(const Settings& settings,
              const std::filesystem::path& run_folder);

} // namespace troupe::models
