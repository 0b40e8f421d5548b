#include "runtime/metrics/predicted_metrics.hpp"

#include "actors/call_options.hpp"
#include "config/error.hpp"
#include "config/log.hpp"
#include "plans/simulator.hpp"
#include "runtime/auto_plan.hpp"

#include <algorithm>
#include <string>

namespace troupe::runtime {

PredictedMetrics::PredictedMetrics(const SessionPlan& session)
  : session_(session) {
  if (is_verb_workflow(session.settings.workflow))
    return;
  try {
    problem_ = profiled_problem(session.settings, session.workflow,
                                session.shapes, session.plan.cluster);
  } catch (const ConfigError& error) {
    log::runtime.warn("no predictions: " + std::string(error.what()));
  }
}

void PredictedMetrics::add(const actors::StepReport& report,
                           StepMetrics& metrics) const {
  if (!problem_ || report.num_samples == 0)
    return;
  metrics.set("perf/predicted_step_s", step_s(report));
  for (const auto& call : session_.workflow.calls)
    if (call.kind == plans::CallKind::train)
      add_mfu(report, call, metrics);
}

/// For samples as long as the step's were.
double PredictedMetrics::step_s(const actors::StepReport& report) const {
  auto problem = *problem_;
  const double samples = report.num_samples;
  const double prompt = static_cast<double>(report.prompt_tokens) / samples;
  const double whole = static_cast<double>(report.tokens) / samples;
  problem.lengths = plans::Lengths(prompt, std::max(1.0, whole - prompt),
                                   std::max(1.0, report.longest - prompt));
  const plans::CostModel costs(problem);
  return plans::simulate_step_s(problem, costs, session_.plan);
}

/// A backward pass is the work of two forwards.
void PredictedMetrics::add_mfu(const actors::StepReport& report,
                               const plans::Call& call,
                               StepMetrics& metrics) const {
  const double work
    = 3 * actors::epochs_of(session_.settings, session_.workflow)
      * forward_flops(session_.shapes.at(call.role),
                      static_cast<double>(report.tokens),
                      static_cast<double>(report.squared_tokens));
  const double peak = problem_->hardware.gemm_flops;
  for (const auto& task : report.tasks) {
    if (task.name != call.name)
      continue;
    const double device_s = actors::Seconds{task.ended - task.started}.count()
                            * static_cast<double>(task.devices.size());
    metrics.set("perf/mfu/" + call.role, work / (device_s * peak));
  }
}

} // namespace troupe::runtime
