// From what the master reports of a step to the metric names of INTERFACE.
// Pure: a value in, numbers out.
#pragma once

#include "actors/step_report.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/session_plan.hpp"

namespace troupe::runtime {

StepMetrics name_step(const SessionPlan& session,
                      const actors::StepReport& report);

/// The same of an evaluation after so many steps: val-core/*, timing_s/testing.
StepMetrics name_evaluation(const SessionPlan& session,
                            const actors::StepReport& report);

} // namespace troupe::runtime
