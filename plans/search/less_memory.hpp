// Cost of a found plan on devices with less memory: whether there is a
// reason to leave more of it free, or to buy more.
#pragma once

#include "plans/search/search.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::plans {

/// Share of each device's memory that is taken from the search.
inline constexpr double less_memory_share = 0.1;

/// Share of the first search's seconds for this one: it answers a side
/// question.
inline constexpr double less_memory_time_share = 0.2;

struct LessMemory {
  std::optional<FoundPlan> best = {}; ///< empty: no plan fits
  double more_s = 0;                  ///< per step, compared to all memory
  /// Differences of its plan: "actor_gen: 64 answers at once, not 96".
  std::vector<std::string> changes = {};
};

/// Repeats the search with a tenth of each device's memory more in reserve, for
/// `less_memory_time_share` of its seconds where they are bounded; returns
/// nullopt if memory is not known or the search was interrupted.
std::optional<LessMemory> search_less_memory(const PlanProblem& problem,
                                             SearchOptions options,
                                             const FoundPlan& best);

/// Returns "10 % less memory: 131.2 s, 3.4 % more (actor_gen: ...)", with at
/// most two of the changes.
std::string less_memory_line(const LessMemory& less, double step_s);

} // namespace troupe::plans
