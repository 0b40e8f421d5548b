// Configuration of a master: the dataflow of a step, where its attempt of the
// run begins, the actors it sends to, when it saves and evaluates, its
// callbacks. Built once by the session, by concept, so that a new feature has
// its own part.
#pragma once

#include "actors/checkpoint/best_checkpoint.hpp"
#include "actors/master/step_report.hpp"
#include "actors/protocol/ask.hpp"
#include "config/base/defaults.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/weights/replicas.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

struct MasterSetup;

/// The dataflow that every step executes.
struct Dataflow {
  plans::Workflow workflow;
  plans::ExecutionPlan plan;
  plans::Replicas replicas;
  plans::StepGraph graph;
  /// Predicted seconds per task of the graph, which determine the order; empty:
  /// none.
  std::vector<double> durations_s = {};
};

/// The point where an attempt of the run begins: step 0, or after a checkpoint.
struct RunStart {
  Incarnation incarnation;
  StepId first_step = {};
  std::map<std::string, double> carried = {};
  std::vector<CallInFlight> in_flight
    = {}; ///< values of the checkpoint that it resumes from
  std::map<ReplicaId, Version> versions = {}; ///< versions of the loaded
                                              ///< replicas
};

/// Rows of the data set that steps read.
struct DataRows {
  DataActor actor;
  std::uint32_t holder = dataset_holder;
  std::uint32_t samples_per_row = 1; ///< rollout.n where samples are prompts
  std::uint32_t rounds = 1;          ///< in which a step may generate
};

/// Actors that carry out tasks.
struct TaskActors {
  std::map<std::string, CallActor> calls;
  std::map<std::pair<ReplicaId, ReplicaId>, MoveActor> moves = {};
  std::map<ReplicaId, ResidencyActor> residencies = {};
  std::vector<NodeActor> nodes = {}; ///< by worker
};

/// A replica in a checkpoint, saved at version max(0, steps - lag). Moves keep
/// a replica at most one version older than home.
struct SavedReplica {
  ReplicaId replica;
  std::uint32_t lag = 0;
};

/// Settings of checkpoints: where, when and of what they are made.
struct SaveSetup {
  CheckpointActor actor = {};
  std::uint32_t every = 0;                        ///< steps; 0: at the end only
  std::uint32_t snapshot_every = 0;               ///< steps; 0: none
  std::vector<SavedReplica> replicas = {};        ///< empty: no checkpoints
  std::shared_ptr<BestCheckpoint> best = nullptr; ///< receives metrics; may be
                                                  ///< null
};

/// When the evaluation runs: before the first step, every so many steps, at the
/// end.
struct EvaluationTimes {
  std::uint32_t every = 0; ///< steps; 0: none in between
  bool at_start = false;
  bool at_end = false;
};

/// The evaluation between two steps.
struct EvaluationSetup {
  EvaluationTimes times = {};
  /// Setup of the evaluation master, without its step and its end.
  std::shared_ptr<const MasterSetup> master = nullptr;
};

/// Callbacks of the master; called from its handlers.
struct MasterCallbacks {
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const RunEnd&)> on_end = {};        ///< once
  std::function<void(const std::string&)> on_stall = {}; ///< list of pending
                                                         ///< waits
};

struct MasterSetup {
  std::string name = "master";
  Dataflow dataflow;
  RunStart start;
  StepId end_step = {};
  DataRows rows;
  TaskActors actors;
  SaveSetup save = {};
  EvaluationSetup evaluation = {};
  bool evaluates = false; ///< its metrics are those of the weights before its
                          ///< step
  MasterCallbacks callbacks;
  std::shared_ptr<AskTable> asks;
  /// The run fails if nothing progresses for this long.
  std::chrono::milliseconds progress_deadline = defaults::progress_deadline;
};

} // namespace troupe::actors
