// What a step should have cost on this machine as `troupe profile` measured it:
// perf/predicted_step_s, and perf/mfu/ROLE, the share of the measured rate of
// large matrix products that a training reached. Without a profile (the
// hardware file in the user's cache) nothing is claimed.
#pragma once

#include "actors/step_report.hpp"
#include "plans/plan_problem.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/session_plan.hpp"

#include <optional>

namespace troupe::runtime {

class PredictedMetrics {
public:
  /// Reads the profile. One that cannot be read is logged and left out.
  explicit PredictedMetrics(const SessionPlan& session);

  void add(const actors::StepReport& report, StepMetrics& metrics) const;

private:
  double step_s(const actors::StepReport& report) const;
  void add_mfu(const actors::StepReport& report, const plans::Call& call,
               StepMetrics& metrics) const;

  const SessionPlan& session_;
  std::optional<plans::PlanProblem> problem_;
};

} // namespace troupe::runtime
