// The findings of `plan replay`, as text of at most 100 columns and as JSON:
// what a run took, what was predicted for it, and what another plan would have
// taken with the lengths and the costs of that run.
#pragma once

#include "plans/advise/advice.hpp"
#include "plans/cost/cluster_hardware.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Seconds of a step.
struct ReplayedStep {
  std::uint32_t step = 0; ///< as in metrics.jsonl
  double measured_s = 0;
  double predicted_s = 0; ///< by the estimator alone
  double fitted_s = 0;    ///< the plan that ran, with the measured costs
  double other_s = 0;     ///< the other plan, with the measured costs
};

/// Seconds in the middle step of calls that are measured together.
struct ReplayedPhase {
  std::string name = {}; ///< of timing_s/NAME
  double measured_s = 0;
  double predicted_s = 0;
  double other_s = 0;
};

/// A plan that ran or could have run.
struct ReplayedPlan {
  std::string name = {};
  plans::ExecutionPlan plan = {};
  bool is_found = false; ///< by a search
};

struct ReplayReport {
  std::string run = {};
  std::string workflow = {};
  std::uint32_t steps_of_run = 0; ///< but the first; `steps` are of these
  plans::ClusterHardware hardware = {};
  ReplayedPlan own = {};
  ReplayedPlan other = {};
  std::vector<ReplayedStep> steps = {};
  std::vector<ReplayedPhase> phases = {};
  std::vector<plans::IdleReason> idle = {}; ///< measured, largest first

  /// Returns the mean over the steps of one of their numbers.
  double mean_s(double ReplayedStep::*seconds) const;
};

/// Returns the report for people.
std::string replay_text(const ReplayReport& report);
/// Returns the report for programs.
std::string replay_json(const ReplayReport& report);

} // namespace troupe::runtime
