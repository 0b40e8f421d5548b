// The last round of a search: moves of the best plan and the next ones are
// counted transfer by transfer as in a run, where the search itself uses closed
// form (move_cost.hpp). What is printed for a plan is then what `plan simulate`
// reports.
#pragma once

#include "plans/search/search.hpp"

namespace troupe::plans {

/// Runs `search_plan`, then re-ranks its best and next plans by such seconds.
/// The bound is that of the search, or the best plan's time where that is less;
/// a proof is kept if its plan stays first. Throws as search_plan.
SearchResult find_plan(const PlanProblem& problem, const CostModel& costs,
                       const SearchOptions& options);

} // namespace troupe::plans
