// From what the master reports of a step to the metric names of INTERFACE.
// Pure: a value in, numbers out.
#pragma once

#include "actors/step_report.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/session_plan.hpp"

namespace troupe::runtime {

/// timing_s/NAME of a call: what it does where several workflows do it, else
/// the call itself. Of what is no call, timing_s/move.
std::string phase_of(const plans::Workflow& workflow, const std::string& call);

StepMetrics name_step(const SessionPlan& session,
                      const actors::StepReport& report);

/// The same of an evaluation after so many steps: val-core/*, timing_s/testing.
StepMetrics name_evaluation(const SessionPlan& session,
                            const actors::StepReport& report);

} // namespace troupe::runtime
