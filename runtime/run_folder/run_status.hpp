// status.json: a run's state for other processes. It is replaced as a whole, so
// a reader never sees half of it.
#pragma once

#include "config/base/error.hpp"
#include "runtime/run_folder/device_peaks.hpp"
#include "runtime/run_folder/run_folder.hpp"

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
  /// starting, running, recovering, stopping, done, failed, stopped,
  /// interrupted; a reader also sees `lost`: the file has running but the
  /// process is gone.
  std::string state = "starting";
  std::uint32_t step = 0;  ///< committed steps
  std::uint32_t steps = 0; ///< steps of the whole run
  std::uint32_t attempt = 1;
  double eta_s = -1; ///< seconds to the end; below 0: unknown
  std::vector<WorkerStatus> workers;
  std::vector<DeviceStatus> devices;
  std::string last_failure; ///< one sentence; empty: none
  std::string trace_url;    ///< without token; empty: the trace is not served
  std::string host;         ///< host of the master
  std::int64_t pid = 0;     ///< the master's
  std::string updated;      ///< UTC, set by write_status
};

/// Returns whether its master may run: `starting`, `running`, `recovering` or
/// `stopping`.
bool is_under_way(const RunStatus& status);

/// Replaces status.json (`updated` becomes now). Throws FailureError if it
/// cannot.
void write_status(const RunFolder& folder, RunStatus status);
/// Throws ConfigError if there is none or it is broken.
RunStatus read_status(const RunFolder& folder);
/// Returns the output of `troupe status --json`.
std::string status_json(const RunStatus& status);
/// Returns the output of `troupe status`, several lines.
std::string status_text(const RunFolder& folder, const RunStatus& status);

/// Returns "2026-01-31T09:05:00Z".
std::string utc_now();
std::string host_name();

} // namespace troupe::runtime
