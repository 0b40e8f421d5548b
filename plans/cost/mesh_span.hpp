// Which groups of a mesh cross the border of a node: their sums and gathers
// take the slower links.
#pragma once

#include "plans/plan/execution_plan.hpp"

namespace troupe::plans {

/// Groups of a mesh that span nodes.
struct MeshSpan {
  bool tensor = false;
  bool context = false;
  bool data = false;
  bool pipeline = false;
};
MeshSpan span_of(const Placement& placement, const Cluster& cluster);

} // namespace troupe::plans
