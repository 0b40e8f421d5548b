// Plans a run anew for the hosts that are left, or for all of them again
// (`cluster.lost_node: shrink`). What is learned does not depend on the plan
// (I1), so the next attempt continues from a checkpoint.
#pragma once

#include "runtime/prepare/prepared_run.hpp"

#include <string>
#include <vector>

namespace troupe::runtime {

/// Makes `run.work` what `whole` is on its hosts without `lost`, and notes
/// these in the attempt: a preset as it is, else the plan that a search finds.
/// Throws FailureError (refused) if calls lag: their order belongs to the plan.
/// Throws PlanError if no plan fits.
void plan_without(PreparedRun& run, const PlannedWork& whole,
                  const std::vector<std::string>& lost);

} // namespace troupe::runtime
