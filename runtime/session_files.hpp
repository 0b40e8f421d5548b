// Everything that a running session writes and says: log, trace, status,
// metrics, failures, the console and the summary at the end. The session
// decides, this records.
#pragma once

#include "actors/step_report.hpp"
#include "runtime/device_peaks.hpp"
#include "runtime/last_words.hpp"
#include "runtime/live/trace_server.hpp"
#include "runtime/metrics/console.hpp"
#include "runtime/metrics/metrics_command.hpp"
#include "runtime/metrics/predicted_metrics.hpp"
#include "runtime/metrics/prometheus.hpp"
#include "runtime/metrics/run_summary.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/metrics/tensorboard_file.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/run_secret.hpp"
#include "runtime/run_status.hpp"
#include "runtime/session_plan.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace troupe::runtime {

class SessionFiles {
public:
  /// Claims the run folder and opens log and trace. Throws ConfigError.
  explicit SessionFiles(const SessionPlan& session);
  ~SessionFiles();

  const RunFolder& folder() const {
    return folder_;
  }
  /// To a file that only this user can read; returns its path.
  std::filesystem::path write_secret(const RunSecret& secret);
  void write_state(const std::string& state);
  void add_worker(std::uint32_t number, const std::string& host,
                  std::int64_t pid);
  void set_worker_state(WorkerId worker, const std::string& state);
  void begin_steps();
  void add_step(const actors::StepReport& report);
  /// Its numbers join those of the step before it, in a line that replaces
  /// that step's ("the last line of a step wins").
  void add_evaluation(const actors::StepReport& report);
  /// Last line of a worker's log that is no warning: why it ended, if it said
  /// so.
  LastWords last_words(WorkerId worker) const;
  bool stop_requested() const;

  void conclude_done(const actors::RunEnd& end, double wall_s);
  void conclude_stopped(const actors::RunEnd& end, double wall_s,
                        bool interrupted);
  void conclude_failed(const actors::RunEnd& end);
  /// A line for people.
  void say(const std::string& text) {
    console_.say(text);
  }

private:
  void open_page();
  void warn_of_skips(const StepMetrics& metrics);
  void note_peaks(const actors::StepReport& report);
  void write_line(const StepMetrics& metrics);
  void write_last_state(const std::string& state, const char* workers);
  void summarise(const actors::RunEnd& end, double wall_s);

  const SessionPlan& session_;
  std::shared_ptr<RunLock> lock_;
  RunFolder folder_;
  Console console_;
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<TensorboardFile> tensorboard_;
  std::unique_ptr<MetricsCommand> command_;
  std::unique_ptr<PrometheusServer> prometheus_;
  std::optional<PredictedMetrics> predicted_;
  /// Numbers of the newest step, and of an evaluation that came before them.
  StepMetrics newest_;
  std::optional<StepMetrics> early_evaluation_;
  std::set<std::string> warned_of_; ///< metrics of skipped steps
  RunSummary summary_;
  RunStatus status_;
  DevicePeaks peaks_;
  std::map<Rank, actors::Seconds> busy_; ///< over the run
  std::unique_ptr<TraceServer> page_;
};

} // namespace troupe::runtime
