// A search for each staleness up to a limit (`algorithm.max_lag`): how many
// steps older the weights that generate may be than those that are trained, and
// what that buys. Samples of older weights cost learning, which no prediction
// sees, so a larger staleness is chosen only where it is faster.
#pragma once

#include "plans/search/search.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::plans {

/// Least gain of a larger staleness, as a share of a step.
inline constexpr double least_staleness_gain = 1e-3;

/// The best plan of one staleness.
struct Staleness {
  std::uint32_t steps = 0;
  std::optional<FoundPlan> best = {}; ///< empty: no plan fits
  double lower_bound_s = 0;           ///< over plans of this staleness
};

struct StalenessSearch {
  SearchResult chosen = {};
  SearchOptions options = {};        ///< of the search that found it
  std::vector<Staleness> tried = {}; ///< by steps; empty: the lag was given
};

/// Returns that lag for each call that generates with weights which training
/// changes; none where nothing generates.
std::map<std::string, std::uint32_t> lag_of_generation(const Workflow& workflow,
                                                       std::uint32_t steps);

/// How far generation is ahead: its first slice, if it has several.
struct StepsAhead {
  std::uint32_t steps = 0;
  std::uint32_t slices = 1; ///< at most steps + 1
};
/// Returns the plan with generation that far ahead.
ExecutionPlan ahead_in_slices(const Workflow& workflow, ExecutionPlan plan,
                              StepsAhead ahead);

/// Returns 0, 1, 2, 4, ... and `max_lag` itself.
std::vector<std::uint32_t> staleness_up_to(std::uint32_t max_lag);

/// Runs `find_plan` for each staleness up to `max_lag`, and tries the plans of
/// a smaller one with a larger one too, so that none is predicted slower than a
/// smaller one whose plan may lag. The plans of each are tried with responses
/// in slices, whose first one is as far ahead (call_slices.hpp). Where
/// `options.lag` is given, only that lag is searched. Seconds of `options` are
/// those of all searches together; branch and bound covers steps without lag,
/// so `exact` walks for the others. Throws as `find_plan` does if nothing fits
/// without lag.
StalenessSearch find_plan_within(const PlanProblem& problem,
                                 const CostModel& costs,
                                 const SearchOptions& options,
                                 std::uint32_t max_lag);

} // namespace troupe::plans
