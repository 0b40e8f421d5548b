// Checks whether a run can resume from a checkpoint under its plan: lags belong
// to a run like its seed, and a checkpoint holds just what its run's lags need.
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include <filesystem>

namespace troupe::runtime {

/// Throws ConfigError if the checkpoint is of a run with other lags.
void check_lags_fit(const std::filesystem::path& checkpoint,
                    const plans::Workflow& workflow,
                    const plans::ExecutionPlan& plan);

} // namespace troupe::runtime
