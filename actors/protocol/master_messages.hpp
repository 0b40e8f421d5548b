// Messages between the actors of the master process.
#pragma once

#include "actors/protocol/row_messages.hpp"
#include "actors/protocol/worker_messages.hpp"

namespace troupe::actors {

/// A call of one step, or a chunk of it, as the master sends it to its call
/// actor.
struct CallTask {
  std::uint32_t task = 0;
  Version version;
  SampleId first; ///< samples of the task: [first, first + count)
  std::uint32_t count = 0;
  /// The samples that these numbers stand for where the step goes on with some
  /// of its samples only, ascending; empty: they are the samples.
  std::vector<SampleId> kept;
  std::vector<RowSource> sources;    ///< sources of the keys that the call
                                     ///< reads
  std::vector<std::uint32_t> tokens; ///< per sample of the step, or kept one
  std::vector<Carried> carried;
  plans::SlicePart slice;
  /// The tasks that share one running batch, including this one: all of them
  /// are sent at once, each is answered when its own samples are done.
  JoinedTasks joined;
};
TROUPE_INSPECT(CallTask, x.task, x.version, x.first, x.count, x.kept, x.sources,
               x.tokens, x.carried, x.slice, x.joined)

struct CallDone {
  std::vector<RunDone> parts; ///< in mesh order
  std::uint64_t fetched_bytes = 0;
  std::uint64_t fetch_ns = 0; ///< until all its rows were local
};
TROUPE_INSPECT(CallDone, x.parts, x.fetched_bytes, x.fetch_ns)

/// A call that was done before the preceding step was (calls_in_flight.hpp).
struct CallInFlight {
  StepId step;
  std::string task; ///< name in the step graph
  CallDone done;
};
TROUPE_INSPECT(CallInFlight, x.step, x.task, x.done)

struct MoveTask {
  std::uint32_t task = 0;
  Version version;
};
TROUPE_INSPECT(MoveTask, x.task, x.version)

/// Requests the rows of the context's step.
struct NextOrder {};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, NextOrder&) {
  return f(caf::meta::type_name("NextOrder"));
}

/// The rows of the data set that a step trains on.
struct DataBatch {
  std::vector<std::uint32_t> rows;   ///< data-set row of each prompt
  std::vector<std::uint32_t> tokens; ///< length of each prompt or sequence
  std::uint32_t epoch = 0;           ///< epoch of the first row
};
TROUPE_INSPECT(DataBatch, x.rows, x.tokens, x.epoch)

/// Copies everything that a run continues from as of the end of the step before
/// `next_step`: for a checkpoint, to be written to disk; for a snapshot, into
/// memory of the hosts; or for both. One save at a time.
struct SaveTask {
  bool checkpoint = true;
  bool snapshot = false;
  StepId next_step;
  std::vector<Carried> carried;
  std::vector<ReplicaId> replicas; ///< indices into plans::Replicas
  std::vector<Version> versions;   ///< per replica
  std::vector<CallInFlight> in_flight;
};
TROUPE_INSPECT(SaveTask, x.checkpoint, x.snapshot, x.next_step, x.carried,
               x.replicas, x.versions, x.in_flight)

/// Reports that the weights may change again.
struct SaveCopied {
  std::uint64_t bytes = 0;
  SnapshotRecordText snapshot; ///< to be written after the step's metrics
};
TROUPE_INSPECT(SaveCopied, x.bytes, x.snapshot)

/// Writes what was copied, then commits the checkpoint.
struct WriteTask {};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, WriteTask&) {
  return f(caf::meta::type_name("WriteTask"));
}

struct SaveDone {
  std::string folder;
  std::uint64_t bytes = 0;
};
TROUPE_INSPECT(SaveDone, x.folder, x.bytes)

} // namespace troupe::actors
