// Checks whether a run can resume from a checkpoint under its plan: lags belong
// to a run like its seed, and a checkpoint holds just what its run's lags need.
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "plans/weights/replicas.hpp"
#include "plans/workflow/workflow.hpp"

#include <filesystem>

namespace troupe::runtime {

/// Returns whether the replica serves calls that lag, so that it is one version
/// older than home between two steps. An EMA role's replica never is: it
/// changes in place.
bool is_lagged(const plans::Workflow& workflow, const plans::Replica& replica,
               const plans::ExecutionPlan& plan);

/// Throws ConfigError if the checkpoint is of a run with other lags.
void check_lags_fit(const std::filesystem::path& checkpoint,
                    const plans::Workflow& workflow,
                    const plans::ExecutionPlan& plan);

} // namespace troupe::runtime
