// The best plan that `plan advise` compares with, within the lag that a
// configuration allows: other systems name one, settings of ours a limit.
#pragma once

#include "config/settings/settings.hpp"
#include "plans/search/search.hpp"

#include <cstdint>

namespace troupe::runtime {

/// How many steps older than the trained ones the weights may be that generate.
struct LagChoice {
  std::uint32_t fixed = 0; ///< of every plan; 0: the search chooses
  std::uint32_t most = 0;  ///< that it may choose
};

/// Returns the choice of settings of ours: up to `algorithm.max_lag`.
LagChoice lag_choice(const Settings& settings);

/// Searches whole calls first, then chunks. Throws PlanError if nothing fits.
plans::SearchResult find_best(const plans::PlanProblem& problem,
                              const LagChoice& lag);

} // namespace troupe::runtime
