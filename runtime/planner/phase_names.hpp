// Names of the times of calls in metrics.jsonl: timing_s/NAME. Calls of several
// workflows that do the same work share one name.
#pragma once

#include "plans/workflow/workflow.hpp"

#include <string>

namespace troupe::runtime {

/// The phase of moves between devices, which are no calls.
inline constexpr const char* move_phase = "timing_s/move";

/// Returns timing_s/NAME of a call: a shared name if several workflows have
/// such a call, else the call's own; of other tasks `move_phase`.
std::string phase_of(const plans::Workflow& workflow, const std::string& call);

} // namespace troupe::runtime
