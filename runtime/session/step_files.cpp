#include "runtime/session/step_files.hpp"

#include "net/child_programs/child_start.hpp"
#include "runtime/metrics/step_names.hpp"

#include <utility>

namespace troupe::runtime {

namespace {

void join(StepMetrics& metrics, const StepMetrics& more) {
  for (const auto& [name, value] : more.values)
    metrics.set(name, value);
}

} // namespace

StepFiles::StepFiles(const PreparedRun& run, const RunFolder& folder)
  : run_(run),
    folder_(folder),
    predicted_(run.work) {
  const auto& wanted = run.work.settings.metrics;
  net::let_variables_through(run.work.settings.cluster.env);
  if (!wanted.command.empty())
    programs_.push_back(std::make_unique<MetricsCommand>(wanted.command));
  for (auto& tracker : trackers_of(run.work.settings, folder.root()))
    programs_.push_back(std::make_unique<MetricsCommand>(std::move(tracker)));
  if (wanted.prometheus != "off")
    prometheus_ = std::make_unique<PrometheusServer>(
      wanted.prometheus, run.work.settings.run.name, folder);
  open_attempt();
}

void StepFiles::open_attempt() {
  const auto& wanted = run_.work.settings.metrics;
  if (wanted.jsonl)
    metrics_ = std::make_unique<MetricsFile>(folder_.metrics_file());
  if (wanted.tensorboard)
    tensorboard_
      = std::make_unique<TensorboardFile>(folder_.tensorboard_folder());
  newest_ = last_metrics(folder_.metrics_file(), run_.steps.first);
  newest_.attempt = run_.attempt.number;
  evaluation_in_flight_.reset();
}

StepMetrics StepFiles::add_step(const actors::StepReport& report) {
  StepMetrics metrics = name_step(run_, report);
  predicted_.add(report, text_tokens(run_, report.step), metrics);
  if (tensorboard_)
    tensorboard_->write(metrics);
  newest_ = metrics;
  if (evaluation_in_flight_ && evaluation_in_flight_->step == metrics.step)
    join(newest_, *std::exchange(evaluation_in_flight_, std::nullopt));
  write_line(newest_);
  return metrics;
}

void StepFiles::add_evaluation(const StepMetrics& found) {
  if (tensorboard_)
    tensorboard_->write(found);
  if (newest_.step < found.step) { // the step waits for its checkpoint's copy
    evaluation_in_flight_ = found;
    return;
  }
  join(newest_, found);
  write_line(newest_);
}

void StepFiles::set_workers(const std::vector<WorkerStatus>& workers) {
  if (prometheus_)
    prometheus_->set_workers(workers);
}

void StepFiles::write_line(const StepMetrics& metrics) {
  if (metrics_)
    metrics_->write(metrics);
  for (const auto& program : programs_)
    program->write(metrics_line(metrics));
  if (prometheus_)
    prometheus_->write(metrics);
}

} // namespace troupe::runtime
