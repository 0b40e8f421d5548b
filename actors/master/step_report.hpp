// The master's record of a step at its commit: which task ran when and where,
// the merged sums of all calls, bytes and tokens. The runtime turns it into
// metric names; nothing here knows files or consoles.
#pragma once

#include "actors/protocol/snapshot_messages.hpp"
#include "config/base/error.hpp"
#include "config/base/ids.hpp"
#include "models/rl/metric_sums.hpp"
#include "plans/schedule/step_graph.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

// messages of actors/protocol: who only reads reports needs none of them
struct CallDone;
struct MoveDone;
struct ResidencyDone;

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct TaskReport {
  std::string name; ///< "actor_gen", "actor_gen[2]", "actor@actor_gen"
  std::string call; ///< call, or call of the chunk
  plans::TaskKind kind = plans::TaskKind::call;
  std::vector<Rank> devices;
  Clock::time_point started;                     ///< sent by the master
  Clock::time_point ended;                       ///< when the reply arrived
  std::vector<Seconds> busy;                     ///< per part, on its device
  std::map<Rank, std::uint64_t> peak_bytes = {}; ///< peaks of device memory
};

/// Seconds that devices were idle, summed over all devices, by what they waited
/// for.
struct IdleSeconds {
  Seconds dependency{}; ///< rows of another call
  Seconds bytes{};      ///< rows or weights in transit
  Seconds device{};     ///< another device of the task's mesh
  Seconds version{};    ///< weights not there yet, or still read
  Seconds total() const {
    return dependency + bytes + device + version;
  }
};

/// Number of tokens of the samples of a step.
struct SampleTokens {
  std::uint32_t num_samples = 0;
  std::uint64_t all = 0;
  std::uint64_t prompts = 0;
  std::uint64_t squared = 0; ///< sum of L^2 over the samples
  std::uint32_t longest = 0; ///< tokens of the longest sample
};

/// Bytes that were transferred between devices in a step.
struct StepTraffic {
  std::uint64_t fetched_bytes = 0; ///< rows
  std::uint64_t moved_bytes = 0;   ///< weights
  std::uint64_t wire_bytes = 0;    ///< the part between processes
};

/// Copies of what the step made: how long the next training waited for them.
struct StepCopies {
  Seconds checkpoint{}; ///< with a snapshot, if one was due too
  Seconds snapshot{};
  SnapshotRecordText record; ///< of the snapshot
};

struct StepReport {
  StepId step;
  std::uint32_t epoch = 0;
  Seconds duration{};      ///< from the previous commit to this one
  models::MetricSums sums; ///< sums of all calls, merged in mesh order
  std::vector<TaskReport> tasks;
  std::map<std::string, double> carried; ///< values after the step
  SampleTokens tokens;
  StepTraffic traffic;
  std::map<Rank, Seconds> busy;        ///< per device
  IdleSeconds idle;                    ///< before and inside its tasks
  std::uint64_t peak_memory_bytes = 0; ///< largest worker process so far
  StepCopies copies;
};

/// Records the current lengths of the samples.
void count_tokens(StepReport& report, std::span<const std::uint32_t> tokens);
/// Returns the report of a task that ends now; the caller adds how long its
/// parts were busy.
TaskReport task_report(const plans::TaskTemplate& entry,
                       Clock::time_point started);

/// Adds a finished call or move to the report.
void add_call(StepReport& report, TaskReport task, const CallDone& done);
void add_move(StepReport& report, TaskReport task, const MoveDone& done);
void add_residency(StepReport& report, TaskReport task,
                   const ResidencyDone& done);

/// Outcome of a run.
struct RunEnd {
  enum class Kind { done, stopped, failed } kind = Kind::done;
  StepId next_step = {};       ///< first step that is not committed
  Failure failure = {};        ///< failed runs: the first failure
  std::string checkpoint = {}; ///< last one written; may be empty
};

} // namespace troupe::actors
