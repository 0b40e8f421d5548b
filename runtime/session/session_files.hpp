// Everything that a running session writes and prints: log, trace, status,
// metrics, failures, the console and the summary at the end. The session
// decides, this records.
#pragma once

#include "actors/master/step_report.hpp"
#include "runtime/metrics/console.hpp"
#include "runtime/metrics/run_summary.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/page/trace_server.hpp"
#include "runtime/prepare/prepared_run.hpp"
#include "runtime/run_folder/crash_report.hpp"
#include "runtime/run_folder/device_peaks.hpp"
#include "runtime/run_folder/failure_log.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/run_secret.hpp"
#include "runtime/run_folder/run_status.hpp"
#include "runtime/session/step_files.hpp"

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
  explicit SessionFiles(const PreparedRun& run);
  ~SessionFiles();

  const RunFolder& folder() const {
    return folder_;
  }
  /// Writes the secret to a file that only this user can read; returns its
  /// path.
  std::filesystem::path write_secret(const RunSecret& secret);
  void write_state(const std::string& state);
  void add_worker(std::uint32_t number, const std::string& host,
                  std::int64_t pid);
  void set_worker_state(WorkerId worker, const std::string& state);
  void begin_steps();
  /// Records a failure after which the run's next attempt begins.
  void begin_recovery(const actors::RunEnd& end, std::uint32_t lost_steps);
  /// Records that the run waits for a node until its steps go on.
  void wait_for_node(const actors::RunEnd& end, std::uint32_t node);
  /// Returns true if the run waits for this node already.
  bool waits_for(std::uint32_t node) const;
  /// Opens the files of the run's next attempt.
  void open_attempt();
  /// Sets why a run that recovered before, or could, does not do so again.
  void give_up(const std::string& reason) {
    failures_.give_up(reason);
  }
  std::uint32_t committed_steps() const {
    return status_.step;
  }
  void add_step(const actors::StepReport& report);
  void add_evaluation(const actors::StepReport& report);
  /// Returns the last line of a worker's log that is no warning: why it ended,
  /// if it reported that.
  CrashReport crash_report(WorkerId worker) const;
  bool stop_requested() const;

  void conclude_done(const actors::RunEnd& end, double wall_s);
  void conclude_stopped(const actors::RunEnd& end, double wall_s,
                        bool interrupted);
  void conclude_failed(const actors::RunEnd& end);
  /// Writes a line to the console.
  void say(const std::string& text) {
    console_.say(text);
  }

private:
  void start_trace() const;
  std::string node_name(std::uint32_t node) const;
  /// Returns a failure with what there is to know of memory, if it ran out.
  Failure explained(Failure failure) const;
  FailureRecord record_of(const actors::RunEnd& end, std::string action) const;
  void open_page();
  void warn_of_skips(const StepMetrics& metrics);
  void note_peaks(const actors::StepReport& report);
  void write_last_state(const std::string& state, const char* workers);
  void summarise(const actors::RunEnd& end, double wall_s);

  const PreparedRun& run_;
  std::shared_ptr<RunLock> lock_;
  RunFolder folder_;
  FailureLog failures_;
  Console console_;
  std::optional<StepFiles> steps_;  ///< opened after the log
  std::set<std::string> warned_of_; ///< skipped_steps metrics with a warning
  RunSummary summary_;
  RunStatus status_;
  DevicePeaks peaks_;
  std::map<Rank, actors::Seconds> busy_; ///< over the run
  std::unique_ptr<TraceServer> page_;
};

} // namespace troupe::runtime
