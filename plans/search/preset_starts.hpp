// The presets that fit a problem: a search starts from them and may not be
// worse than any.
#pragma once

#include "plans/search/search.hpp"

#include <vector>

namespace troupe::plans::internal {

/// Adds a plan, fastest first, unless it is already there.
void add_found(std::vector<FoundPlan>& all, FoundPlan found);

/// Returns the presets that fit, fastest first; those with a lag only where the
/// user allows exactly that lag.
std::vector<FoundPlan> presets_that_fit(const PlanProblem& problem,
                                        const CostModel& costs,
                                        const SearchOptions& options);

} // namespace troupe::plans::internal
