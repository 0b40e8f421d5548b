// The presets that fit a problem: what a search starts from and may not be
// worse than.
#pragma once

#include "plans/search.hpp"

#include <vector>

namespace troupe::plans::internal {

/// Keeps the fastest first; a plan that is there is not added again.
void add_found(std::vector<FoundPlan>& all, FoundPlan found);

/// Fastest first; those with a lag only where the user allows just that.
std::vector<FoundPlan> presets_that_fit(const PlanProblem& problem,
                                        const CostModel& costs,
                                        const SearchOptions& options);

} // namespace troupe::plans::internal
