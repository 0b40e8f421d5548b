// What a plan costs on this machine: runs the program itself for a few steps,
// in a folder of its own that goes afterwards, and reads its metrics.
#pragma once

#include "plans/execution_plan.hpp"
#include "runtime/verbs/verb.hpp"

#include <map>
#include <optional>
#include <string>

namespace troupe::runtime {

/// Medians over the steps after the first one.
struct PlanCosts {
  double step_s = 0;
  double idle_share = 0;
  double moved_bytes = 0;   ///< a step
  double peak_bytes = 0;    ///< counted, of the fullest device
  double process_bytes = 0; ///< resident memory of the largest worker process
  /// Tokens of a sample where samples are prompts and answers; 0 elsewhere.
  double prompt_tokens = 0;
  double response_tokens = 0;
  double longest_response_tokens = 0;
  std::map<std::string, double> phases_s = {}; ///< by timing_s/NAME
};

struct MeasuredPlan {
  std::optional<PlanCosts> costs;
  std::string why = {}; ///< where there are none: the run's last line
};

MeasuredPlan measure_plan(const ConfigWords& config,
                          const plans::ExecutionPlan& plan, int steps);

} // namespace troupe::runtime
