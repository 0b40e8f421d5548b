#include "plans/search/refined_plans.hpp"

#include "config/base/clock.hpp"
#include "plans/cost/cost_model.hpp"
#include "plans/simulate/simulator.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::plans {

SearchResult find_plan(const PlanProblem& problem, const CostModel& costs,
                       const SearchOptions& options) {
  const Stopwatch watch;
  auto result = search_plan(problem, costs, options);
  const auto planned = costs.with_planned_moves();
  std::vector<FoundPlan> plans = {result.best};
  std::ranges::move(result.next, std::back_inserter(plans));
  for (auto& plan : plans)
    plan.step_s = simulate_step_s(problem, planned, plan.plan);
  std::ranges::stable_sort(plans, {}, &FoundPlan::step_s);
  if (result.proved && plans.front().plan != result.best.plan) {
    result.proved = false;
    result.end = SearchEnd::refined;
  }
  result.best = plans.front();
  result.next.assign(plans.begin() + 1, plans.end());
  result.lower_bound_s = std::min(result.lower_bound_s, result.best.step_s);
  result.seconds = watch.seconds();
  return result;
}

} // namespace troupe::plans
