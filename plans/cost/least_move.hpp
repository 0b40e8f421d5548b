// A lower bound of a move in closed form, from the degrees of both strategies
// alone: the search works out a move device by device (move_cost.hpp) only
// where this bound does not already rule the plan out.
#pragma once

#include "plans/cost/move_cost.hpp"

#include <cstdint>

namespace troupe::plans {

struct Hardware;

/// Returns at most the seconds of `move_seconds(move_bytes(...), ...)` for any
/// meshes of these strategies that are inside a node or begin with one, and
/// have their devices in ascending order or in any other inside each node.
double least_move_seconds(const UnitBytes& model, const Strategy& source,
                          const Strategy& target, std::uint32_t node_size,
                          const Hardware& hardware, double sent_share = 1);

} // namespace troupe::plans
