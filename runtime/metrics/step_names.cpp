#include "runtime/metrics/step_names.hpp"

#include "actors/worker_base/user_calls.hpp"
#include "runtime/planner/phase_names.hpp"
#include "runtime/run_folder/device_peaks.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace troupe::runtime {

namespace {

void name_times(const PreparedRun& run, const actors::StepReport& report,
                StepMetrics& metrics) {
  std::map<std::string, double> phases;
  for (const auto& task : report.tasks) {
    // recording samples is in no phase; planes are offloaded and reloaded
    // beside calls
    const bool known = run.work.workflow.find_call(task.call) != nullptr;
    const bool moves = task.kind == plans::TaskKind::move
                       || task.kind == plans::TaskKind::update;
    if (!moves && (task.kind != plans::TaskKind::call || !known))
      continue;
    phases[phase_of(run.work.workflow, moves ? "" : task.call)]
      += actors::Seconds{task.ended - task.started}.count();
  }
  for (const auto& [name, seconds] : phases)
    metrics.set(name, seconds);
  const double step_s = report.duration.count();
  metrics.set("timing_s/step", step_s);
  if (report.copies.checkpoint.count() > 0)
    metrics.set("timing_s/save_checkpoint", report.copies.checkpoint.count());
  if (report.copies.snapshot.count() > 0)
    metrics.set("timing_s/snapshot", report.copies.snapshot.count());
  metrics.set("perf/time_per_step", step_s);
}

/// Adds the idle share by reason, in proportion to the idle times before and
/// inside the step's tasks, which with a lag extend beyond the step.
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

void name_speed(const PreparedRun& run, const actors::StepReport& report,
                StepMetrics& metrics) {
  const double step_s = std::max(report.duration.count(), 1e-9);
  const auto devices = std::max(1U, run.work.plan.cluster.num_devices());
  const auto texts = text_tokens(run, report.step);
  const auto tokens = std::accumulate(texts.begin(), texts.end(),
                                      static_cast<double>(report.tokens.all));
  metrics.set("perf/total_num_tokens", tokens);
  metrics.set("perf/throughput", tokens / step_s / devices);
  metrics.set("perf/max_memory_gb",
              static_cast<double>(report.peak_memory_bytes) / 1e9);
  metrics.set("perf/device_memory_gb",
              static_cast<double>(peak_bytes_of(report)) / 1e9);
  metrics.set("perf/moved_gb",
              static_cast<double>(report.traffic.moved_bytes) / 1e9);
  double busy_s = 0;
  for (const auto& [rank, busy] : report.busy)
    busy_s += std::min(busy.count(), step_s);
  const double idle = 1 - busy_s / (step_s * devices);
  metrics.set("perf/idle_ratio", idle);
  name_idle(report.idle, idle, metrics);
}

/// Adds the number of versions between the weights that generated the step's
/// samples and those that its training began with, where all tokens have the
/// same; of calls in slices, shards sum it over tokens. Every shard checks its
/// version (I4).
void name_lag(const PreparedRun& run, const actors::StepReport& report,
              StepMetrics& metrics) {
  for (const auto& call : run.work.workflow.calls) {
    if (call.kind != plans::CallKind::generate
        || run.work.plan.slices_of(call.name) > 1)
      continue;
    const auto made_by
      = plans::version_for(report.step, run.work.plan.lag_of(call.name));
    metrics.set("training/lag_mean",
                static_cast<double>(report.step.value - made_by.value));
  }
}

/// Adds the rows that each file of data.train gave to the step.
void name_sources(const PreparedRun& run, StepId step, StepMetrics& metrics) {
  const auto& sources = run.data.sources;
  if (!sources)
    return;
  const auto counts = sources->of_step(step.value);
  for (std::size_t i = 0; i < counts.size(); ++i)
    metrics.set("data/rows/" + sources->names()[i], counts[i]);
}

} // namespace

StepMetrics name_step(const PreparedRun& run,
                      const actors::StepReport& report) {
  StepMetrics metrics;
  metrics.step = step_number(report.step);
  metrics.attempt = run.attempt.number;
  for (const auto& entry : report.sums.all())
    metrics.set(entry.name, report.sums.value(entry.name));
  for (const auto& value : run.work.workflow.carried)
    if (!value.metric.empty())
      metrics.set(value.metric, report.carried.at(value.name));
  metrics.set("training/epoch", report.epoch);
  metrics.set("data/bad_rows", static_cast<double>(run.data.bad_rows));
  name_sources(run, report.step, metrics);
  if (run.attempt.restarts > 0) {
    metrics.set("training/restarts", run.attempt.restarts);
    metrics.set("training/lost_steps", run.attempt.lost_steps);
  }
  for (const auto& call : run.work.workflow.calls)
    if (const auto* user = actors::find_user_entry(call.fn))
      for (const auto& metric : user->metrics)
        metrics.user.push_back(metric.name);
  name_lag(run, report, metrics);
  name_times(run, report, metrics);
  name_speed(run, report, metrics);
  return metrics;
}

std::vector<std::uint32_t> text_tokens(const PreparedRun& run, StepId step) {
  const auto& texts = run.data.texts;
  return texts ? texts->of_step(step.value) : std::vector<std::uint32_t>{};
}

StepMetrics name_evaluation(const PreparedRun& run,
                            const actors::StepReport& report) {
  StepMetrics metrics;
  metrics.step = report.step.value;
  metrics.attempt = run.attempt.number;
  for (const auto& entry : report.sums.all())
    metrics.set(entry.name, report.sums.value(entry.name));
  metrics.set("timing_s/testing", report.duration.count());
  return metrics;
}

} // namespace troupe::runtime
