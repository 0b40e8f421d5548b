// Calls of a step by depth: which may run side by side, and whether every call
// of a level waits for the whole previous level. Branch and bound needs that.
#pragma once

#include "plans/workflow/workflow.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans {

/// Returns for each call of the workflow which calls it waits for, directly or
/// indirectly.
std::vector<std::vector<bool>> awaited_calls(const Workflow& workflow);

/// Returns the calls with devices by depth in the data edges; indices count
/// such calls only, in workflow order. Functions run on the host between the
/// levels.
std::vector<std::vector<std::uint32_t>> call_levels(const Workflow& workflow);

/// Returns whether every call waits, directly or indirectly, for every call of
/// the previous level.
bool has_barriers(const Workflow& workflow);

} // namespace troupe::plans
