// State of a running master, by concept: how far steps are, which tasks are in
// flight, the checkpoint and the evaluation in progress, and heartbeats of the
// workers.
#pragma once

#include "actors/calls/row_table.hpp"
#include "actors/master/device_waits.hpp"
#include "actors/master/idle_times.hpp"
#include "actors/master/master_setup.hpp"
#include "config/base/awake_clock.hpp"
#include "plans/schedule/schedule.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// Progress of the run and what its steps left.
struct RunProgress {
  StepId committed_end; ///< steps before this are committed
  StepId end_step;      ///< lowered when the run is to stop
  bool ended = false;
  std::map<StepId, StepReport> reports;
  std::map<std::string, double> carried; ///< after the last committed step
  std::map<ReplicaId, Version> versions; ///< versions of the targets of moves
  std::map<ReplicaId, Version> server_versions; ///< of updates' servers
  Clock::time_point last_commit;
  std::uint64_t peak_memory_bytes = 0;
};

/// A call's task that was sent: with the chunk that it joins, or at its start.
struct SentCall {
  std::optional<Clock::time_point> started;
  std::optional<CallDone> done;
};

/// Tasks that the schedule released and that have not ended.
struct InFlight {
  std::uint32_t running = 0; ///< sent, no reply yet
  std::map<StepId, std::vector<plans::TaskRef>> need_data; ///< waiting for rows
  std::vector<plans::TaskRef> held; ///< waiting for a save or the end
  /// The last thing that tasks which have not begun waited for; absent: rows.
  std::map<plans::TaskRef, plans::WaitReason> waited;
  std::map<plans::TaskRef, SentCall> sent_calls;
};

/// The checkpoint in progress.
struct SaveState {
  /// Steps of the checkpoint that devices are copying: weights must not change.
  std::optional<StepId> copying;
  bool writing = false; ///< whether a copied checkpoint is being written
  std::string folder;   ///< last one written; empty: none
  /// plans::steps_ahead of each task.
  std::vector<std::uint32_t> ahead;
  /// Results of calls that a checkpoint keeps or kept, until their step ends.
  std::map<plans::TaskRef, CallDone> in_flight;
};

/// The evaluation in progress.
struct EvaluationState {
  /// Steps after which it is due or runs: no task starts.
  std::optional<StepId> after;
  Clock::time_point began; ///< when nothing ran any more
  MasterActor master;      ///< the evaluation master
};

/// Tracks whether workers make progress.
struct StallWatch {
  AwakeClock::time_point last_progress;
  std::map<std::uint32_t, std::uint64_t> progress; ///< by worker
  std::map<std::uint32_t, std::string> reading;    ///< workers that read data
  bool shown = false;
};

/// Why devices are idle.
struct IdleDevices {
  IdleTimes times;
  DeviceWaits waits; ///< shown in the trace
};

struct MasterState {
  std::string name = "master";
  Asks asks;
  MasterSetup setup;
  std::optional<plans::Schedule> schedule;
  RowTable rows;
  RunProgress progress;
  InFlight tasks;
  SaveState save;
  EvaluationState evaluation;
  StallWatch stalls;
  IdleDevices idle;
};

} // namespace troupe::actors
