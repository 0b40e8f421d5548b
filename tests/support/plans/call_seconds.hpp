// Predictions of single calls, for tests of the cost model.
#pragma once

#include "plans/cost/cost_model.hpp"

#include "tests/support/plans/problem_support.hpp"

#include <string>

namespace troupe::plans {

/// Returns the seconds of a call that the first devices run by `strategy`.
inline double seconds_of_call(const PlanProblem& problem,
                              const std::string& call,
                              const std::string& strategy) {
  const CostModel costs(problem);
  const auto parsed = parse_strategy(strategy);
  return costs.call_s(
    problem.workflow.call(call),
    {.devices = ranks(0, parsed.num_devices() - 1), .strategy = parsed});
}

} // namespace troupe::plans
