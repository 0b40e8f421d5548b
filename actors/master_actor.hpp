// Runs the schedule: hands each task to its call or move actor as soon as the
// schedule says so, records where rows are, commits steps, asks for
// checkpoints, and ends the run - done, stopped after a checkpoint, or failed
// with the first cause. All decisions are plans::Schedule's; this only sends.
//
//     start -> launch ready tasks -> task done -> more ready tasks
//                                       |-> step done -> commit, copy? report
//                                                               |-> write,
//                                                               commit
//     stop  -> no new steps -> last step done -> save -> end(stopped)
//     down / failure -> abort all nodes -> end(failed)
//
// Between two steps it may evaluate: nothing new starts, and once nothing runs
// any more a second master runs one step of the evaluation's graph on the same
// shards; then this one goes on. Training meets the weights that it left.
//
// Parent: the session, which ends it with the actor system.
#pragma once

#include "actors/ask.hpp"
#include "actors/best_checkpoint.hpp"
#include "actors/device_waits.hpp"
#include "actors/idle_times.hpp"
#include "actors/row_table.hpp"
#include "actors/step_report.hpp"
#include "config/awake_clock.hpp"
#include "config/defaults.hpp"
#include "config/settings.hpp"
#include "plans/replicas.hpp"
#include "plans/schedule.hpp"

#include <functional>
#include <map>
#include <optional>

namespace troupe::actors {

/// What a checkpoint holds of a replica: version max(0, steps - lag). Moves
/// keep a replica at most one version behind home.
struct SavedReplica {
  ReplicaId replica;
  std::uint32_t lag = 0;
};

/// When the evaluation runs: before the first step, every so many, at the end.
struct EvaluationTimes {
  std::uint32_t every = 0; ///< steps; 0: not in between
  bool at_start = false;
  bool at_end = false;
};

struct MasterSetup {
  std::string name = "master";
  plans::Workflow workflow;
  plans::ExecutionPlan plan;
  plans::Replicas replicas;
  plans::StepGraph graph;
  /// Predicted seconds by task of the graph, which shape the order; or none.
  std::vector<double> durations_s = {};
  Incarnation incarnation;
  StepId first_step;
  StepId end_step;
  std::uint32_t samples_per_row = 1; ///< rollout.n where samples are prompts
  std::uint32_t save_every = 0;      ///< steps; 0: at the end only
  std::vector<SavedReplica> saved;   ///< in checkpoints; empty: there are none
  std::map<std::string, double> carried; ///< at the start
  std::vector<EarlyCall> early; ///< of the checkpoint that it goes on from
  std::map<ReplicaId, Version> versions; ///< of replicas that were loaded
  std::map<std::string, CallActor> calls;
  std::map<std::pair<ReplicaId, ReplicaId>, MoveActor> moves;
  std::map<ReplicaId, LifeActor> lives;
  DataActor data;
  CheckpointActor checkpoint;
  std::vector<NodeActor> nodes; ///< by worker
  std::uint32_t data_holder = dataset_holder;
  EvaluationTimes evaluation_times;
  /// Of the master that evaluates; it gets its step and its end.
  std::shared_ptr<const MasterSetup> evaluation;
  std::shared_ptr<BestCheckpoint> best; ///< is told numbers; may be nullptr
  bool evaluates = false; ///< its numbers are of the weights before its step
  std::shared_ptr<AskTable> asks;
  std::function<void(const StepReport&)> on_step;
  std::function<void(const RunEnd&)> on_end; ///< once, from a handler
  /// Without any for so long the run fails.
  std::chrono::milliseconds progress_deadline = defaults::progress_deadline;
  std::function<void(const std::string&)> on_stall; ///< who waits for whom
};

/// A call's task that was sent: with the chunk that it joins, or at its start.
struct SentCall {
  std::optional<Clock::time_point> started;
  std::optional<CallDone> done;
};

struct MasterState {
  std::string name = "master";
  Asks asks;
  MasterSetup setup;
  std::optional<plans::Schedule> schedule;
  RowTable rows;
  std::map<StepId, StepReport> reports;
  std::map<StepId, std::vector<plans::TaskRef>> need_data; ///< wait for rows
  std::vector<plans::TaskRef> held; ///< wait for a save or the end
  IdleTimes idle;
  DeviceWaits device_waits; ///< in the trace
  /// What tasks that have not begun waited for last; absent: rows.
  std::map<plans::TaskRef, plans::WaitReason> waited;
  std::map<std::string, double> carried; ///< after the last committed step
  std::vector<std::uint32_t> ahead;      ///< by task: plans::steps_ahead
  /// Answers of calls that a checkpoint keeps or kept, until their step's end.
  std::map<plans::TaskRef, CallDone> early;
  std::map<plans::TaskRef, SentCall> sent_calls; ///< that have not ended
  std::map<ReplicaId, Version> versions;         ///< of targets of moves
  StepId committed_end; ///< steps before this are committed
  /// Steps of the checkpoint that devices are copying: weights must stay.
  std::optional<StepId> copying;
  bool writing = false; ///< a checkpoint that was copied
  /// Steps after which an evaluation is due or under way: no task starts.
  std::optional<StepId> evaluating;
  Clock::time_point evaluation_began; ///< once nothing ran any more
  MasterActor judge;                  ///< of the evaluation under way
  StepId end_step;                    ///< moves nearer when the run is to stop
  std::uint32_t running = 0;          ///< tasks sent and not answered
  std::string checkpoint;
  Clock::time_point last_commit;
  AwakeClock::time_point last_progress;
  std::uint64_t peak_memory_bytes = 0;
  std::map<std::uint32_t, std::uint64_t> progress; ///< by worker
  std::map<std::uint32_t, std::string> reading;    ///< of workers that do
  bool stall_shown = false;
  bool ended = false;
};

MasterActor::behavior_type master_actor(Self<MasterActor, MasterState> self,
                                        MasterSetup setup);

} // namespace troupe::actors
