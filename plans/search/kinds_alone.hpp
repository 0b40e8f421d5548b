// The best plan on the nodes of each kind alone, where nodes differ. These are
// alike, so branch and bound finds it; a walk over all nodes is not sure to
// leave a kind that is of no use. The search takes such plans as it takes
// presets: its result is no worse, and their choices are in its space. Where
// nodes of a kind do not lie side by side, a mesh on several of them is no run
// of devices: such a plan is outside the space, and its bound is not for it.
#pragma once

#include "plans/search/search.hpp"

#include <vector>

namespace troupe::plans::internal {

/// Returns for each kind the plan that a search finds for its nodes, placed on
/// these nodes of the cluster; fastest first, without kinds that no plan fits.
/// None where nodes are alike.
std::vector<FoundPlan> plans_on_one_kind(const PlanProblem& problem,
                                         const CostModel& costs,
                                         const SearchOptions& options);

} // namespace troupe::plans::internal
