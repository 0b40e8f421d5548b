// The actors of the master process for one run: made from the session's plan
// once all shards are loaded. Handles stay with the session (unreferenced CAF
// actors are collected).
#pragma once

#include "actors/master_actor.hpp"
#include "actors/setup_actor.hpp"
#include "runtime/session_plan.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::runtime {

/// What the session and its actors share.
struct RunBasis {
  const SessionPlan& session;
  plans::Workflow workflow;  ///< with recording and evaluation
  plans::ExecutionPlan plan; ///< of all its calls
  plans::Replicas replicas;
  plans::StepGraph graph;
  std::vector<double> durations_s; ///< predicted, by task; empty: all alike
  Incarnation incarnation;
  std::string run_id;
  std::shared_ptr<actors::AskTable> asks;
  std::shared_ptr<actors::BestCheckpoint> best; ///< nullptr: nobody asks
  /// Versions that the replicas are loaded at, by replica.
  std::map<ReplicaId, Version> versions;
  std::map<std::string, double> carried;
  /// Of the checkpoint, with the workers that held their rows.
  std::vector<actors::EarlyCall> early;
};

RunBasis make_basis(const SessionPlan& session, const std::string& run_id);

/// What every replica loads: its role's folder, or its part of the checkpoint.
std::vector<actors::LoadSpec> load_specs(const RunBasis& basis);

/// A master and the actors that work for it.
struct MasterActors {
  actors::MasterActor master;
  /// All of them, the master too: each must be told to exit at the end, or the
  /// actor system would wait for it.
  std::vector<caf::actor_addr> all;
};

/// The self-test of moves in place of a master, which waits for `start`.
struct MoveCheckActors {
  actors::MoveCheckActor check;
  std::vector<caf::actor_addr> all;
};
MoveCheckActors
spawn_move_check(caf::actor_system& system, const RunBasis& basis,
                 const std::vector<actors::SetupDone>& ready,
                 std::function<void(const actors::RunEnd&)> on_end);

/// What the master tells, from handlers of its own.
struct MasterEvents {
  std::function<void(const actors::StepReport&)> on_step;
  std::function<void(const actors::StepReport&)> on_evaluation;
  std::function<void(const actors::RunEnd&)> on_end;
  std::function<void(const std::string&)> on_stall;
};

/// Spawns call, move, data and checkpoint actors around a master, which waits
/// for `start`. `ready` and `nodes` are by worker.
MasterActors spawn_master(caf::actor_system& system, const RunBasis& basis,
                          const std::vector<actors::SetupDone>& ready,
                          const std::vector<actors::NodeActor>& nodes,
                          MasterEvents events);

} // namespace troupe::runtime
