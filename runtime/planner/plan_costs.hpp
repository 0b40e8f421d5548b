// The costs of a plan where it ran: read from the metrics of a run of some
// steps (runtime/commands/plan_measure.hpp).
#pragma once

#include <map>
#include <optional>
#include <string>

namespace troupe::runtime {

/// Medians over the steps after the first one.
struct PlanCosts {
  double step_s = 0;
  double idle_share = 0;
  double moved_bytes = 0;   ///< per step
  double peak_bytes = 0;    ///< counted, of the fullest device
  double process_bytes = 0; ///< resident memory of the largest worker process
  /// Tokens per sample if samples are prompts and responses; otherwise 0.
  double prompt_tokens = 0;
  double response_tokens = 0;
  double longest_response_tokens = 0;
  std::map<std::string, double> phases_s = {}; ///< by NAME of timing_s/NAME
};

struct MeasuredPlan {
  std::optional<PlanCosts> costs;
  std::string why = {}; ///< if there are no steps: the run's last line
};

} // namespace troupe::runtime
