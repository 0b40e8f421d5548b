// Measures this machine in a process of its own (`troupe profile --quick`): the
// contexts and the memory that it opens on GPUs are free again when it has
// ended, where the master of a run would keep them for the whole run.
#pragma once

#include "config/settings/settings.hpp"
#include "runtime/planning/profiler.hpp"

#include <string>

namespace troupe::runtime {

/// Runs `program`, this one, on the settings. Throws FailureError with the last
/// line of its output if it fails.
MachineProfile measure_in_child(const Settings& settings,
                                const std::string& program);

} // namespace troupe::runtime
