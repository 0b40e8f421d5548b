// Starts of a search in a cluster whose nodes differ. A walk that changes one
// call at a time seldom leaves a kind of node: the others wait for that call,
// and its weights then move between nodes. So every way to give generation,
// inference and training their kinds of nodes is a start, and so are presets
// and the plans of each kind alone (kinds_alone.hpp).
#pragma once

#include "plans/search/local_search.hpp"
#include "plans/search/search.hpp"

#include <vector>

namespace troupe::plans {

/// Simulates those of `plans` that are points of the space: `cost` remembers
/// the best few of them.
void simulate_plans(const std::vector<FoundPlan>& plans,
                    const SearchSpace& space, PointCost& cost,
                    const Walk& walk);

/// Simulates each way to give kinds, descends from the best few, then from the
/// points that `cost` remembered before, until the walk ends.
void walk_from_kinds(const SearchSpace& space, PointCost& cost, Walk& walk);

} // namespace troupe::plans
