// The predicted cost of a step on this machine, as measured by `troupe
// profile`: perf/predicted_step_s, and perf/mfu/ROLE, the share of the measured
// rate of large matrix products that a training reached. Without a profile (the
// hardware file in the user's cache) neither is reported.
#pragma once

#include "actors/master/step_report.hpp"
#include "plans/cost/plan_problem.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/prepare/planned_work.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace troupe::runtime {

class PredictedMetrics {
public:
  /// Reads the profile. One that cannot be read is logged and ignored.
  explicit PredictedMetrics(const PlannedWork& work);

  /// `texts`: tokens of each row of data.ptx that the step trained on.
  void add(const actors::StepReport& report,
           std::span<const std::uint32_t> texts, StepMetrics& metrics) const;

private:
  double step_s(const actors::StepReport& report) const;
  void add_mfu(const actors::StepReport& report, const plans::Call& call,
               std::span<const std::uint32_t> texts,
               StepMetrics& metrics) const;

  const PlannedWork& work_;
  std::optional<plans::PlanProblem> problem_;
};

} // namespace troupe::runtime
