// The memory of a plan as text: of each device, and of each generation's cache.
#pragma once

#include "plans/check/plan_check.hpp"
#include "plans/memory/mask_memory.hpp"

#include <string>

namespace troupe::runtime {

/// Returns the peak bytes per device, with the task that reaches it; then the
/// rooms of generations.
std::string memory_table(const plans::PlanReport& report);
/// Returns a line on sampling masks; empty: none are stored.
std::string masks_text(const plans::MaskBytes& masks);
/// Returns a line per generation: concurrent responses and their cache.
std::string rooms_text(const plans::ResponseRooms& rooms);

} // namespace troupe::runtime
