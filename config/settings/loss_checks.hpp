// Checks of the settings of losses against each other: combinations that would
// count a ratio twice, or that no program has.
#pragma once

#include "config/settings/settings.hpp"

namespace troupe {

/// Checks `algorithm.loss`, `algorithm.correction` and `algorithm.like`. Throws
/// ConfigError at the place of the setting, else at `whole`.
void check_losses(const Settings& settings, const Place& whole);

} // namespace troupe
