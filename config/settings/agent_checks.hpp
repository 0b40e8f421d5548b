// Checks of `agents` against the other settings: what programs from outside
// cannot do is refused before a run starts.
#pragma once

#include "config/settings/settings.hpp"

namespace troupe {

/// Checks `agents.command` and `reward.kind: agents`. Throws ConfigError at the
/// place of the setting, else at `whole`.
void check_agents(const Settings& settings, const Place& whole);

} // namespace troupe
