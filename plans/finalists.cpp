#include "plans/finalists.hpp"

#include "plans/cost_model.hpp"
#include "plans/simulator.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace troupe::plans {

SearchResult find_plan(const PlanProblem& problem, const CostModel& costs,
                       const SearchOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = search_plan(problem, costs, options);
  const auto planned = costs.with_planned_moves();
  std::vector<FoundPlan> finalists = {result.best};
  std::ranges::move(result.next, std::back_inserter(finalists));
  for (auto& finalist : finalists)
    finalist.step_s = simulate_step_s(problem, planned, finalist.plan);
  std::ranges::stable_sort(finalists, {}, &FoundPlan::step_s);
  result.proved = result.proved && finalists.front().plan == result.best.plan;
  result.best = finalists.front();
  result.next.assign(finalists.begin() + 1, finalists.end());
  result.lower_bound_s = std::min(result.lower_bound_s, result.best.step_s);
  result.seconds
    = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
        .count();
  return result;
}

} // namespace troupe::plans
