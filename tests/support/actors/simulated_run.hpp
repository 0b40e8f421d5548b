// A run without engines: weights are a version and a hash of all that went into
// them, rows are hashes, a checkpoint is a copy of both. So a step that is
// lost, trained twice or trained with other weights changes the hash at the
// end. Wrong versions and conflicts between tasks that run together are
// reported at once.
#pragma once

#include "actors/master/master_setup.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

struct SimulatedWeights {
  Version version;
  std::uint64_t bits = 0;

  bool operator==(const SimulatedWeights&) const = default;
};

/// A hash per sample, by step and key.
using SimulatedRows = std::map<std::pair<StepId, std::string>,
                               std::map<std::uint32_t, std::uint64_t>>;

/// Contents of a checkpoint.
struct SimulatedCheckpoint {
  StepId next_step;
  std::map<ReplicaId, SimulatedWeights> weights; ///< of the saved replicas
  SimulatedRows rows;                            ///< of the calls in flight
  std::vector<CallInFlight> in_flight;
  std::map<std::string, double> carried;
};

class SimulatedRun {
public:
  explicit SimulatedRun(const Dataflow& dataflow) : dataflow_(dataflow) {}

  // -- attempts --------------------------------------------------------------

  /// Loads the newest checkpoint; returns where the attempt begins.
  RunStart begin(Incarnation attempt);

  std::vector<SavedReplica> saved_replicas() const;

  // -- tasks: what happens between the order and the reply -------------------

  void begin_call(StepId step, const CallTask& task);
  CallDone end_call(StepId step, const CallTask& task);
  void begin_move(ReplicaId source, const MoveTask& task);
  void end_move(ReplicaId source, ReplicaId target, const MoveTask& task);
  void begin_copy(const SaveTask& task);
  void end_copy(const SaveTask& task);
  void copy_rows(StepId step, const RunDone& part);
  void end_write();

  std::map<ReplicaId, SimulatedWeights> weights;
  std::optional<SimulatedCheckpoint> disk;
  std::vector<std::string> errors;

private:
  static std::uint64_t mixed(std::uint64_t bits, std::uint64_t more);
  void expect(bool holds, const std::string& otherwise);
  const plans::Call& call_of(const CallTask& task) const;
  std::uint32_t lag_of(const plans::Replica& replica) const;
  /// Returns what a replica loads: its own weights if they were saved, else
  /// home's, which have the same version.
  SimulatedWeights loaded(const plans::Replica& replica, StepId step);
  std::uint64_t read(StepId step, const std::string& key, const CallTask& task);
  void train(ReplicaId replica, const plans::Call& call, StepId step,
             std::uint64_t bits);

  const Dataflow& dataflow_;
  SimulatedRows rows_;
  std::map<ReplicaId, int> busy_; ///< tasks that read its weights now
  std::optional<SimulatedCheckpoint> copied_;
};

} // namespace troupe::actors
