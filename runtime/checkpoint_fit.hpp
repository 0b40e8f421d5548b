// Whether a run can go on from a checkpoint under its plan: lags belong to a
// run like its seed, and a checkpoint holds just what its run's lags need.
#pragma once

#include "plans/execution_plan.hpp"
#include "plans/replicas.hpp"
#include "plans/workflow.hpp"

#include <filesystem>

namespace troupe::runtime {

/// Whether the replica serves calls that lag, so that it is a version behind
/// home's between two steps. A follower's never are: they change in place.
bool is_lagged(const plans::Workflow& workflow, const plans::Replica& replica,
               const plans::ExecutionPlan& plan);

/// ConfigError if the checkpoint is of a run with other lags.
void check_lags_fit(const std::filesystem::path& checkpoint,
                    const plans::Workflow& workflow,
                    const plans::ExecutionPlan& plan);

} // namespace troupe::runtime
