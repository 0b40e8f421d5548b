// The last round of a search: of the best plan and the next ones, moves are
// counted transfer by transfer as a run would make them, where the search
// itself has them in closed form (move_cost.hpp). What is printed of a plan is
// then what `plan simulate` says of it.
#pragma once

#include "plans/search.hpp"

namespace troupe::plans {

/// `search_plan`, then its best and next plans by such seconds. The bound stays
/// that of the search, or what the best plan takes where that is less; a proof
/// is kept while it is of the plan that stays first. Throws as search_plan.
SearchResult find_plan(const PlanProblem& problem, const CostModel& costs,
                       const SearchOptions& options);

} // namespace troupe::plans
