// status.json and failures.jsonl: what other processes may know about a run.
// status.json is replaced as a whole, so a reader never sees half of it.
#pragma once

#include "config/error.hpp"
#include "runtime/device_peaks.hpp"
#include "runtime/run_folder.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

struct WorkerStatus {
  std::uint32_t rank = 0;
  std::string host;
  std::int64_t pid = 0;
  std::string state; ///< starting, ready, suspect, lost, done
};

struct DeviceStatus {
  std::uint32_t device = 0;
  DevicePeak peak; ///< so far
};

struct RunStatus {
  /// starting, running, stopping, done, failed, stopped, interrupted; a reader
  /// also sees `lost`: it says running but its process is gone.
  std::string state = "starting";
  std::uint32_t step = 0;  ///< committed steps
  std::uint32_t steps = 0; ///< of the whole run
  std::uint32_t attempt = 1;
  double eta_s = -1; ///< seconds to the end; below 0: unknown
  std::vector<WorkerStatus> workers;
  std::vector<DeviceStatus> devices;
  std::string last_failure; ///< one sentence; empty: none
  std::string trace_url;    ///< empty: nothing serves the trace
  std::string host;         ///< where the master runs
  std::int64_t pid = 0;     ///< the master's
  std::string updated;      ///< UTC, set by write_status
};

/// Whether its master may run: `starting`, `running` or `stopping`.
bool is_under_way(const RunStatus& status);

/// Replaces status.json (`updated` becomes now). FailureError if it cannot.
void write_status(const RunFolder& folder, RunStatus status);
/// ConfigError if there is none or it is broken.
RunStatus read_status(const RunFolder& folder);
/// As `troupe status --json` prints it.
std::string status_json(const RunStatus& status);
/// As `troupe status` prints it, several lines.
std::string status_text(const RunFolder& folder, const RunStatus& status);

/// One line of failures.jsonl; `time` is UTC and filled in by append_failure.
struct FailureRecord {
  std::uint32_t attempt = 1;
  std::string who; ///< "worker 1 (pid 4711)"
  std::string host;
  std::string when; ///< "step 12, actor_train"
  Errc code = Errc::ok;
  std::string what;
  std::string cause;  ///< the first cause; empty: `what` is it
  std::string action; ///< what the run did: "stopped the run"
};
void append_failure(const RunFolder& folder, const FailureRecord& record);

/// "2026-01-31T09:05:00Z"
std::string utc_now();
std::string host_name();

} // namespace troupe::runtime
