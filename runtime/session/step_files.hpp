// Destinations of a step's numbers beside the console: metrics.jsonl,
// TensorBoard, the user's metrics command and Prometheus, together with what
// was predicted for it.
#pragma once

#include "actors/master/step_report.hpp"
#include "runtime/metrics/predicted_metrics.hpp"
#include "runtime/metrics/prometheus.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/metrics/tensorboard_file.hpp"
#include "runtime/metrics/trackers.hpp"
#include "runtime/prepare/prepared_run.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/run_status.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace troupe::runtime {

class StepFiles {
public:
  /// Opens the files and servers of the settings. The run must outlive this
  /// object.
  StepFiles(const PreparedRun& run, const RunFolder& folder);

  /// Opens the files again where the run's next attempt begins.
  void open_attempt();
  /// Writes a committed step; returns its numbers.
  StepMetrics add_step(const actors::StepReport& report);
  /// Writes the numbers of an evaluation. They are added to those of the step
  /// before it, in a line that replaces that step's ("the last line of a step
  /// wins").
  void add_evaluation(const StepMetrics& found);
  /// Sets the workers that the Prometheus endpoint shows.
  void set_workers(const std::vector<WorkerStatus>& workers);

private:
  void write_line(const StepMetrics& metrics);

  const PreparedRun& run_;
  RunFolder folder_;
  PredictedMetrics predicted_;
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<TensorboardFile> tensorboard_;
  /// metrics.command and the trackers.
  std::vector<std::unique_ptr<MetricsCommand>> programs_;
  std::unique_ptr<PrometheusServer> prometheus_;
  /// Numbers of the newest step, and of an evaluation that preceded it.
  StepMetrics newest_;
  std::optional<StepMetrics> evaluation_in_flight_;
};

} // namespace troupe::runtime
