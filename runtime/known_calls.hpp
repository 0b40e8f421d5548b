// Whether the program knows what a workflow file names: functions, losses, own
// actors, and what their code reads and carries.
#pragma once

#include "config/settings.hpp"

namespace troupe::runtime {

/// Before the graph is made: what is misspelt there shows elsewhere. Nothing to
/// do for a workflow that is in no file. Throws ConfigError at the file's line,
/// with the nearest name.
void check_known_calls(const Settings& settings);

} // namespace troupe::runtime
