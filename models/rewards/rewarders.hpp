// Creates the Rewarder of `reward.kind`, if it is not a model.
#pragma once

#include "models/rewards/reward.hpp"

#include <filesystem>
#include <memory>

namespace troupe::models {

/// Returns the Rewarder that the settings select; stderr of programs goes to
/// logs in `run_folder`/logs. Throws ConfigError for mistakes that are
/// detectable before scoring, so calling it checks the settings.
std::unique_ptr<Rewarder>
make_rewarder(const Settings& settings,
              const std::filesystem::path& run_folder);

} // namespace troupe::models
