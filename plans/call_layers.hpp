// Calls of a step by depth: which may run side by side, and whether every call
// of a layer waits for the whole layer before. Branch and bound needs that.
#pragma once

#include "plans/workflow.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans {

/// By call of the workflow: which calls it waits for, directly or not.
std::vector<std::vector<bool>> calls_behind(const Workflow& workflow);

/// Calls with devices by depth in the data edges; numbers count such calls
/// only, in workflow order. Functions run on the host between the layers.
std::vector<std::vector<std::uint32_t>> call_layers(const Workflow& workflow);

/// Whether every call waits, directly or not, for every call of the layer
/// before its own.
bool has_barriers(const Workflow& workflow);

} // namespace troupe::plans
