// Whether the program knows what a workflow file names: functions, losses, own
// actors, and what their code reads and carries.
#pragma once

#include "config/settings.hpp"
#include "plans/workflow.hpp"

namespace troupe::runtime {

/// Nothing to do for a workflow that is in no file. Throws ConfigError at the
/// file's line, with the nearest name.
void check_known_calls(const Settings& settings,
                       const plans::Workflow& workflow);

} // namespace troupe::runtime
