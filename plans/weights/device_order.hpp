// Which device of a mesh takes which coordinate. Weights that come from another
// layout on the same devices need not all move: each coordinate goes to the
// device that already holds most of its boxes. Sums run in the order of
// coordinates, so results do not depend on this order (I1).
//
// Devices are swapped only inside their node, and not if a tensor group would
// then be spread over more workers: calls use the same links as before.
#pragma once

#include "plans/plan/execution_plan.hpp"

#include <vector>

namespace troupe::plans {

/// Returns the devices of `target`, the i-th for coordinate_of(strategy, i):
/// ascending unless another order keeps more of the bytes of `source` in place.
/// The overlap of two coordinates follows from the degrees alone; ties go by
/// device number. A mesh is ascending if its strategy does not fill it, or if
/// its stages or tensor shares do not nest with those of the source.
std::vector<Rank> order_devices(const Placement& source,
                                const Placement& target,
                                const Cluster& cluster);

} // namespace troupe::plans
