// How the columns of a published table are predicted: with the engine of the
// measured system, and the plan that it would have had. What those systems ran
// was not published; the plan is the best of its recipes in our cost model, not
// a reproduction of its run.
#pragma once

#include "plans/cost/cost_model.hpp"
#include "plans/plan/execution_plan.hpp"

#include <string>
#include <vector>

namespace troupe::plans {

/// Returns sizes as those systems keep them on a GPU, whatever ours does:
/// weights, activations and cache in the dtype of their products, layer inputs
/// only unless `algorithm.recompute` is false, passes of 32,768 tokens.
BatchSizes published_sizes(BatchSizes sizes, const Settings& settings);

/// Returns the effects of the column `name`, a preset.
CostEffects published_effects(const std::string& name);

/// Returns its recipes: presets of this problem that fit it. Throws PlanError,
/// as the preset itself does, if none fits.
std::vector<ExecutionPlan> published_plans(const std::string& name,
                                           const PlanProblem& problem);

/// Returns the recipe that `costs` predicts to be fastest.
ExecutionPlan published_plan(const std::string& name,
                             const PlanProblem& problem,
                             const CostModel& costs);

} // namespace troupe::plans
