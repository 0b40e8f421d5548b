#include "runtime/metrics/predicted_metrics.hpp"

#include "actors/worker_base/call_options.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "plans/simulate/simulator.hpp"
#include "runtime/planning/auto_plan.hpp"

#include <algorithm>
#include <string>

namespace troupe::runtime {

PredictedMetrics::PredictedMetrics(const PlannedWork& work) : work_(work) {
  if (is_command_workflow(work.settings.workflow))
    return;
  try {
    problem_ = profiled_problem(work.settings, work.workflow, work.shapes,
                                work.plan.cluster);
  } catch (const ConfigError& error) {
    log::runtime.warn("no predictions: " + std::string(error.what()));
  }
}

void PredictedMetrics::add(const actors::StepReport& report,
                           std::span<const std::uint32_t> texts,
                           StepMetrics& metrics) const {
  if (!problem_ || report.tokens.num_samples == 0)
    return;
  metrics.set("perf/predicted_step_s", step_s(report));
  for (const auto& call : work_.workflow.calls)
    if (call.kind == plans::CallKind::train)
      add_mfu(report, call, texts, metrics);
}

/// Predicts for samples as long as the step's were.
double PredictedMetrics::step_s(const actors::StepReport& report) const {
  auto problem = *problem_;
  const double samples = report.tokens.num_samples;
  const double prompt = static_cast<double>(report.tokens.prompts) / samples;
  const double whole = static_cast<double>(report.tokens.all) / samples;
  problem.lengths
    = plans::Lengths(prompt, std::max(1.0, whole - prompt),
                     std::max(1.0, report.tokens.longest - prompt));
  const plans::CostModel costs(problem);
  return plans::simulate_step_s(problem, costs, work_.plan);
}

/// Adds perf/mfu of a training; a backward pass counts as two forward passes.
void PredictedMetrics::add_mfu(const actors::StepReport& report,
                               const plans::Call& call,
                               std::span<const std::uint32_t> texts,
                               StepMetrics& metrics) const {
  auto tokens = static_cast<double>(report.tokens.all);
  auto squared = static_cast<double>(report.tokens.squared);
  if (call.rows.ptx > 0)
    for (const double length : texts) {
      tokens += length;
      squared += length * length;
    }
  const double work
    = 3 * actors::epochs_of(work_.settings, work_.workflow)
      * forward_flops(work_.shapes.at(call.role), tokens, squared);
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
