// Calls that servers of another program answer (`rollout.engine`), and those of
// them whose servers get new weights in each step.
#pragma once

#include "plans/workflow/workflow.hpp"

namespace troupe::plans {

/// Marks the generations that servers answer by the settings: none where
/// responses are replayed.
void set_servers(const Settings& settings, Workflow& workflow);

/// Returns whether servers answer the call with weights that change.
bool has_server_update(const Workflow& workflow, const Call& call);

} // namespace troupe::plans
