// Messages between the actors of the master process.
#pragma once

#include "actors/row_messages.hpp"
#include "actors/worker_messages.hpp"

namespace troupe::actors {

/// A call of one step, or a chunk of it, as the master hands it to its call
/// actor.
struct CallTask {
  std::uint32_t task = 0;
  Version version;
  SampleId first; ///< the samples of the task: first .. first + count - 1
  std::uint32_t count = 0;
  std::vector<RowSource> sources;    ///< of the keys that the call reads
  std::vector<std::uint32_t> tokens; ///< of each sample of the step
  std::vector<Carried> carried;
  /// The tasks that share one running batch, in order, itself among them: all
  /// of them are sent at once, each is answered when its own samples are done.
  std::vector<std::uint32_t> joined;
};
TROUPE_INSPECT(CallTask, x.task, x.version, x.first, x.count, x.sources,
               x.tokens, x.carried, x.joined)

struct CallDone {
  std::vector<RunDone> parts; ///< in order of the mesh
  std::uint64_t fetched_bytes = 0;
  std::uint64_t fetch_ns = 0; ///< until all its rows were local
};
TROUPE_INSPECT(CallDone, x.parts, x.fetched_bytes, x.fetch_ns)

/// A call that was done before the step ahead of it was (early_calls.hpp).
struct EarlyCall {
  StepId step;
  std::string task; ///< its name in the step graph
  CallDone done;
};
TROUPE_INSPECT(EarlyCall, x.step, x.task, x.done)

struct MoveTask {
  std::uint32_t task = 0;
  Version version;
};
TROUPE_INSPECT(MoveTask, x.task, x.version)

/// The rows of the context's step, please.
struct NextOrder {};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, NextOrder&) {
  return f(caf::meta::type_name("NextOrder"));
}

/// Which rows of the data set a step trains on.
struct DataBatch {
  std::vector<std::uint32_t> rows;   ///< data-set row of each prompt
  std::vector<std::uint32_t> tokens; ///< length of each prompt or sequence
  std::uint32_t epoch = 0;           ///< of the first row
};
TROUPE_INSPECT(DataBatch, x.rows, x.tokens, x.epoch)

/// Copy everything that a checkpoint holds as of the end of the step before
/// `next_step`; one save at a time.
struct SaveTask {
  StepId next_step;
  std::vector<Carried> carried;
  std::vector<ReplicaId> replicas; ///< indices into plans::Replicas
  std::vector<Version> versions;   ///< of each
  std::vector<EarlyCall> early;
};
TROUPE_INSPECT(SaveTask, x.next_step, x.carried, x.replicas, x.versions,
               x.early)

/// The weights may change again.
struct SaveCopied {
  std::uint64_t bytes = 0;
};
TROUPE_INSPECT(SaveCopied, x.bytes)

/// Write what was copied, then commit the checkpoint.
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
