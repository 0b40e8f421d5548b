// The gain of each staleness up to `algorithm.max_lag`, as lines for people and
// as JSON: seconds a step, steps an hour, tokens a second and the gain over
// fresh weights, before anything runs.
#pragma once

#include "plans/search/staleness.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace troupe::runtime {

/// Returns the lines of the table; none where only one staleness was searched.
std::vector<std::string> staleness_lines(const plans::StalenessSearch& found,
                                         const plans::PlanProblem& problem);

/// Returns [{steps, fits, step_s, steps_per_hour, tokens_per_s, gain,
/// lower_bound_s, chosen, plan}]; the numbers and the plan are null where no
/// plan fits. Empty where the lag was given.
nlohmann::ordered_json staleness_json(const plans::StalenessSearch& found,
                                      const plans::PlanProblem& problem);

} // namespace troupe::runtime
