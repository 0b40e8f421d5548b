// Checks of `rollout.engine` against the other settings: what servers of
// another program cannot do is refused before a run starts.
#pragma once

#include "config/settings/settings.hpp"

namespace troupe {

/// Checks `rollout.engine`, `rollout.servers` and `rollout.server_command`.
/// Throws ConfigError at the place of the setting, else at `whole`.
void check_engine(const Settings& settings, const Place& whole);

} // namespace troupe
