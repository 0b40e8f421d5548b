// Whether the program knows what a workflow file names: functions, losses, own
// actors, and what their code reads and carries.
#pragma once

#include "config/settings.hpp"
#include "plans/workflow.hpp"

namespace troupe::runtime {

/// The workflow of the settings. Throws ConfigError, of a file at its line and
/// with the nearest name.
plans::Workflow known_workflow(const Settings& settings);

} // namespace troupe::runtime
