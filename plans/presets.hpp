// Plans by name, for any workflow and cluster they fit.
#pragma once

#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::plans {

/// Presets that this version runs: single, data_parallel.
const std::vector<std::string>& preset_names();
/// Whether a later version has a preset of this name (flattening, openrlhf,
/// ..): `preset` then says so.
bool is_later_preset(std::string_view name);

/// `single`: every call on device 0. `data_parallel`: every call on all
/// devices, all of them data-parallel. Functions run on the host. Throws
/// PlanError that lists the presets of this version and the nearest name.
ExecutionPlan preset(const std::string& name, const Workflow& workflow,
                     const Cluster& cluster);

} // namespace troupe::plans
