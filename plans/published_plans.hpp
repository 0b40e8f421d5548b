// How the columns of a published table are predicted: with the engine of the
// system that was measured, and the plan that it would have had. What those
// systems ran was not published; the plan is the best of its recipes in our
// cost model, not a reproduction of its run.
#pragma once

#include "plans/cost_model.hpp"
#include "plans/execution_plan.hpp"

#include <string>
#include <vector>

namespace troupe::plans {

/// Of the column `name`, a preset.
CostEffects published_effects(const std::string& name);

/// Its recipes: presets of this problem that fit it. PlanError, as of the
/// preset itself, where none does.
std::vector<ExecutionPlan> published_plans(const std::string& name,
                                           const PlanProblem& problem);

/// The one of them that `costs` predicts to be fastest.
ExecutionPlan published_plan(const std::string& name,
                             const PlanProblem& problem,
                             const CostModel& costs);

} // namespace troupe::plans
