// The work of a run and its placement: settings without `auto`, workflow, model
// shapes and plan, with the result of the plan check. All that the plan
// commands need, and the first part of a PreparedRun.
#pragma once

#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "plans/check/plan_check.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"
#include "runtime/planning/auto_plan.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {

struct PlannedWork {
  Settings settings; ///< cluster and plan without `auto`
  plans::Workflow workflow;
  std::map<std::string, ModelShape> shapes; ///< per role
  plans::ExecutionPlan plan;
  std::string plan_name; ///< "data_parallel (chosen by auto)", a file's name
  std::vector<std::string> plan_why;  ///< for a searched plan: how good, the
                                      ///< next best
  plans::PlanReport report;           ///< result of plan_check: warnings, peak
                                      ///< bytes
  std::uint32_t samples_per_step = 0; ///< batch_size * n
};

/// Chooses workflow, shapes and plan by the settings. Model folders need no
/// weights; errors of the plan are in `report`.
PlannedWork plan_work(const Settings& settings,
                      MeasuredNow measured = MeasuredNow::is_kept);

/// Returns run.dir/run.name.
std::filesystem::path run_folder_of(const Settings& settings);

/// Returns the type in which checkpoints store the role's weights.
DType saved_dtype(const PlannedWork& work, const std::string& role);

} // namespace troupe::runtime
