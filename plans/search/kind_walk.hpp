// Starts of a search in a cluster whose nodes differ. A walk that changes one
// call at a time seldom leaves a kind of node: the others wait for that call,
// and its weights then move between nodes. So every way to give generation,
// inference and training their kinds of nodes is a start.
#pragma once

#include "plans/search/local_search.hpp"

namespace troupe::plans {

/// Simulates each start and descends from the best few, until the walk ends.
void walk_from_kinds(const SearchSpace& space, PointCost& cost, Walk& walk);

} // namespace troupe::plans
