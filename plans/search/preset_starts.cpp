#include "plans/search/preset_starts.hpp"

#include "config/base/error.hpp"
#include "plans/presets/presets.hpp"
#include "plans/simulate/simulator.hpp"

#include <algorithm>

namespace troupe::plans::internal {

void add_found(std::vector<FoundPlan>& all, FoundPlan found) {
  if (std::ranges::find(all, found.plan, &FoundPlan::plan) != all.end())
    return;
  const auto at
    = std::ranges::upper_bound(all, found.step_s, {}, &FoundPlan::step_s);
  all.insert(at, std::move(found));
}

std::vector<FoundPlan> presets_that_fit(const PlanProblem& problem,
                                        const CostModel& costs,
                                        const SearchOptions& options) {
  std::vector<FoundPlan> fitting;
  for (const auto& name : preset_names()) {
    try {
      auto plan = fitted_preset(name, problem);
      const bool allowed = plan.lag.empty() || plan.lag == options.lag;
      if (!allowed || !check_plan(problem, plan).ok())
        continue;
      const auto step_s = simulate_step_s(problem, costs, plan);
      add_found(fitting, {step_s, "preset " + name, std::move(plan)});
    } catch (const PlanError&) {
      continue; // it does not fit this cluster, which `compare` shows
    }
  }
  return fitting;
}

} // namespace troupe::plans::internal
