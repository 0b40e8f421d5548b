// Which device of a mesh takes which coordinate. Weights that come from another
// layout on the same devices need not all move: the device that holds most of a
// coordinate's boxes already takes that coordinate. Sums run in the order of
// coordinates, so numbers do not depend on it (I1).
//
// Devices trade places inside their node only, and not if a tensor group would
// then be spread over more workers: calls cross the links that they crossed.
#pragma once

#include "plans/execution_plan.hpp"

#include <vector>

namespace troupe::plans {

/// The devices of `target`, the i-th for coordinate_of(strategy, i): ascending
/// unless another order keeps more of the bytes of `source` in place. What two
/// coordinates have in common follows from degrees alone; ties go by device
/// number. A mesh that its strategy does not fill is ascending, and so is one
/// whose stages or tensor shares do not nest with those of the source.
std::vector<Rank> order_devices(const Placement& source,
                                const Placement& target,
                                const Cluster& cluster);

} // namespace troupe::plans
