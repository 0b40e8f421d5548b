// Checks that the program has what a workflow file names: functions, losses,
// user-defined actors, and what their code reads and carries.
#pragma once

#include "config/settings/settings.hpp"
#include "plans/workflow/workflow.hpp"

namespace troupe::runtime {

/// Returns the workflow of the settings. Throws ConfigError, for a file at its
/// line and with the nearest name.
plans::Workflow known_workflow(const Settings& settings);

} // namespace troupe::runtime
