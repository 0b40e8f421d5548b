// State that a session and the actors of its master process share: the calls of
// the run as they will be scheduled, and what the first step begins with.
#pragma once

#include "actors/checkpoint/best_checkpoint.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/master_messages.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/weights/replicas.hpp"
#include "runtime/prepare/prepared_run.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::runtime {

/// The state in which a run begins or resumes.
struct RunStart {
  /// Versions that the replicas are loaded at.
  std::map<ReplicaId, Version> versions;
  std::map<std::string, double> carried;
  /// Calls in flight of the checkpoint, with the workers that held their rows.
  std::vector<actors::CallInFlight> in_flight;
};

struct RunBasis {
  const PreparedRun& run;
  plans::Workflow workflow;  ///< with sample log and evaluation
  plans::ExecutionPlan plan; ///< for all its calls
  plans::Replicas replicas;
  plans::StepGraph graph;
  std::vector<double> durations_s; ///< predicted, per task; empty: all equal
  Incarnation incarnation;
  std::string run_id;
  std::shared_ptr<actors::AskTable> asks;
  std::shared_ptr<actors::BestCheckpoint> best; ///< nullptr: not tracked
  RunStart start;
  /// Number of the snapshot whose record was written last.
  std::shared_ptr<std::atomic<std::uint64_t>> recorded;
};

RunBasis make_basis(const PreparedRun& run, const std::string& run_id);

} // namespace troupe::runtime
