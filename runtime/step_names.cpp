#include "runtime/step_names.hpp"

#include "actors/own_calls.hpp"
#include "runtime/device_peaks.hpp"

#include <algorithm>
#include <map>

namespace troupe::runtime {

std::string phase_of(const plans::Workflow& workflow, const std::string& name) {
  const auto* call = workflow.find_call(name);
  if (call == nullptr)
    return "timing_s/move";
  const bool critic = call->role == "critic";
  switch (call->kind) {
  case plans::CallKind::generate:
    return "timing_s/gen";
  case plans::CallKind::train:
    return critic ? "timing_s/update_critic" : "timing_s/update_actor";
  case plans::CallKind::inference:
    if (call->fn == "scores")
      return "timing_s/reward";
    if (critic)
      return "timing_s/values";
    return workflow.role(call->role).trained ? "timing_s/old_log_prob"
                                             : "timing_s/ref";
  case plans::CallKind::function:
    return call->fn == "rewards" ? "timing_s/reward" : "timing_s/adv";
  }
  return "timing_s/other";
}

namespace {

void name_times(const SessionPlan& session, const actors::StepReport& report,
                StepMetrics& metrics) {
  std::map<std::string, double> phases;
  for (const auto& task : report.tasks) {
    // recording samples is nobody's phase; planes come and go beside calls
    const bool known = session.workflow.find_call(task.call) != nullptr;
    if (task.kind != plans::TaskKind::move
        && (task.kind != plans::TaskKind::call || !known))
      continue;
    phases[phase_of(session.workflow, task.call)]
      += actors::Seconds{task.ended - task.started}.count();
  }
  for (const auto& [name, seconds] : phases)
    metrics.set(name, seconds);
  const double step_s = report.duration.count();
  metrics.set("timing_s/step", step_s);
  if (report.save.count() > 0)
    metrics.set("timing_s/save_checkpoint", report.save.count());
  metrics.set("perf/time_per_step", step_s);
}

/// The idle share by reason: as the idle times before and inside the step's
/// tasks, which with a lag reach over the step's borders.
void name_idle(const actors::IdleSeconds& idle, double share,
               StepMetrics& metrics) {
  const double all_s = idle.total().count();
  if (all_s <= 0)
    return;
  const auto set = [&](const char* name, actors::Seconds part) {
    metrics.set(name, share * part.count() / all_s);
  };
  set("perf/idle/dependency", idle.dependency);
  set("perf/idle/bytes", idle.bytes);
  set("perf/idle/device", idle.device);
  set("perf/idle/version", idle.version);
}

void name_speed(const SessionPlan& session, const actors::StepReport& report,
                StepMetrics& metrics) {
  const double step_s = std::max(report.duration.count(), 1e-9);
  const auto devices = std::max(1U, session.plan.cluster.num_devices());
  const auto tokens = static_cast<double>(report.tokens);
  metrics.set("perf/total_num_tokens", tokens);
  metrics.set("perf/throughput", tokens / step_s / devices);
  metrics.set("perf/max_memory_gb",
              static_cast<double>(report.peak_memory_bytes) / 1e9);
  metrics.set("perf/device_memory_gb",
              static_cast<double>(peak_bytes_of(report)) / 1e9);
  metrics.set("perf/moved_gb", static_cast<double>(report.moved_bytes) / 1e9);
  double busy_s = 0;
  for (const auto& [rank, busy] : report.busy)
    busy_s += std::min(busy.count(), step_s);
  const double idle = 1 - busy_s / (step_s * devices);
  metrics.set("perf/idle_ratio", idle);
  name_idle(report.idle, idle, metrics);
}

/// Versions between the weights that generated the step's samples and those
/// that its training began with. Every shard checks its version (I4).
void name_lag(const SessionPlan& session, const actors::StepReport& report,
              StepMetrics& metrics) {
  for (const auto& call : session.workflow.calls) {
    if (call.kind != plans::CallKind::generate)
      continue;
    const auto made_by
      = plans::version_for(report.step, session.plan.lag_of(call.name));
    metrics.set("training/lag_mean",
                static_cast<double>(report.step.value - made_by.value));
  }
}

} // namespace

StepMetrics name_step(const SessionPlan& session,
                      const actors::StepReport& report) {
  StepMetrics metrics;
  metrics.step = step_number(report.step);
  metrics.attempt = session.attempt;
  for (const auto& entry : report.sums.all())
    metrics.set(entry.name, report.sums.value(entry.name));
  for (const auto& value : session.workflow.carried)
    if (!value.metric.empty())
      metrics.set(value.metric, report.carried.at(value.name));
  metrics.set("training/epoch", report.epoch);
  metrics.set("data/bad_rows", static_cast<double>(session.bad_rows));
  for (const auto& call : session.workflow.calls)
    if (const auto* own = actors::find_own_entry(call.fn))
      for (const auto& metric : own->metrics)
        metrics.own.push_back(metric.name);
  name_lag(session, report, metrics);
  name_times(session, report, metrics);
  name_speed(session, report, metrics);
  return metrics;
}

StepMetrics name_evaluation(const SessionPlan& session,
                            const actors::StepReport& report) {
  StepMetrics metrics;
  metrics.step = report.step.value;
  metrics.attempt = session.attempt;
  for (const auto& entry : report.sums.all())
    metrics.set(entry.name, report.sums.value(entry.name));
  metrics.set("timing_s/testing", report.duration.count());
  return metrics;
}

} // namespace troupe::runtime
