#include "runtime/planner/best_plan.hpp"

#include "plans/search/staleness.hpp"
#include "runtime/planner/user_plan.hpp"

namespace troupe::runtime {

LagChoice lag_choice(const Settings& settings) {
  return {.most = max_lag_of(settings)};
}

plans::SearchResult find_best(const plans::PlanProblem& problem,
                              const LagChoice& lag) {
  plans::SearchOptions options{.chunks = plans::ChunkSearch::afterwards};
  for (const auto& call : problem.workflow.calls)
    if (lag.fixed > 0 && call.kind == plans::CallKind::generate)
      options.lag[call.name] = lag.fixed;
  return plans::find_plan_within(problem, plans::CostModel(problem), options,
                                 lag.most)
    .chosen;
}

} // namespace troupe::runtime
