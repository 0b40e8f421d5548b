// Messages to and from the actors of worker processes: joining, heartbeats, and
// the orders that shards and functions carry out.
#pragma once

#include "actors/protocol/join_messages.hpp"
#include "actors/protocol/snapshot_messages.hpp"
#include "config/base/dtype.hpp"

namespace troupe::actors {

/// Builds a replica and loads its weights: the role's folder, a checkpoint, or
/// a snapshot.
struct LoadOrder {
  Version version;
  std::string folder;      ///< HF folder
  std::string state_file;  ///< optimizer planes; empty: start fresh
  bool shape_only = false; ///< whether the weights arrive by a move
  bool frozen = false;     ///< whether only calls of the replica read them
  SnapshotKey snapshot;    ///< instead of weights and state, if it has an id
};
TROUPE_INSPECT(LoadOrder, x.version, x.folder, x.state_file, x.shape_only,
               x.frozen, x.snapshot)

struct LoadDone {
  std::uint64_t bytes = 0;
};
TROUPE_INSPECT(LoadDone, x.bytes)

/// Heartbeat request.
struct PingOrder {};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PingOrder&) {
  return f(caf::meta::type_name("PingOrder"));
}

/// Heartbeat reply: the progress counters of the threads and user-defined
/// actors.
struct HeartbeatReply {
  std::vector<Rank> devices;
  std::vector<std::uint64_t> progress;
  std::uint64_t memory_bytes = 0; ///< resident size of the process
  std::uint64_t stash_bytes = 0;
  std::uint64_t dropped_events = 0;
  std::string reading; ///< "reads data.train, row 512 of 1000", or empty
};
TROUPE_INSPECT(HeartbeatReply, x.devices, x.progress, x.memory_bytes,
               x.stash_bytes, x.dropped_events, x.reading)

// -- work --------------------------------------------------------------------

/// Makes rows local before `run`.
struct FetchOrder {
  std::uint32_t task = 0;
  std::vector<RowSource> sources;
};
TROUPE_INSPECT(FetchOrder, x.task, x.sources)

struct FetchDone {
  std::uint64_t bytes = 0; ///< over the network
};
TROUPE_INSPECT(FetchDone, x.bytes)

/// One device's part of a call.
struct RunOrder {
  std::uint32_t task = 0;
  std::string call;
  Version version; ///< version that the weights must have (I4)
  std::vector<std::vector<SampleId>>
    batches; ///< mini-batches in order; empty: one
  std::uint32_t epochs = 1;
  std::vector<Carried> carried;
  bool has_rows = true; ///< false: it reads no rows, so none were fetched
  plans::SlicePart slice;
  JoinedTasks joined; ///< including this one (CallTask)
};
TROUPE_INSPECT(RunOrder, x.task, x.call, x.version, x.batches, x.epochs,
               x.carried, x.has_rows, x.slice, x.joined)

struct RunDone {
  WorkerId holder;
  std::vector<SampleId> samples;
  std::vector<std::uint32_t> tokens; ///< per sample, if sequences were made
  std::vector<std::string> keys;     ///< keys written, now in the holder's
                                     ///< stash
  std::vector<SumPart> sums;
  std::vector<Carried> carried;
  std::uint64_t begin_ns = 0; ///< steady clock of the worker
  std::uint64_t busy_ns = 0;
  std::uint64_t bytes = 0;       ///< size of the rows produced
  std::vector<PeakMemory> peaks; ///< of its device; empty: host function
};
TROUPE_INSPECT(RunDone, x.holder, x.samples, x.tokens, x.keys, x.sums,
               x.carried, x.begin_ns, x.busy_ns, x.bytes, x.peaks)

/// Checks that the weights are at `version` and keeps them until the move to
/// `target` ends.
struct PublishOrder {
  std::uint32_t task = 0;
  Version version;
  ReplicaId target;
};
TROUPE_INSPECT(PublishOrder, x.task, x.version, x.target)

struct PublishDone {
  std::uint64_t checksum = 0; ///< 0 unless run.check_moves
};
TROUPE_INSPECT(PublishDone, x.checksum)

/// Overwrites the weights of the target's shards with version `version` of the
/// source. A shard of the source sends its part to other hosts; if the two are
/// one, the target is its server.
struct MoveOrder {
  std::uint32_t task = 0;
  ReplicaId source;
  ReplicaId target;
  Version version;
};
TROUPE_INSPECT(MoveOrder, x.task, x.source, x.target, x.version)

struct MoveDone {
  std::uint64_t bytes = 0;      ///< between devices
  std::uint64_t wire_bytes = 0; ///< the part between processes
  std::uint64_t begin_ns = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t checksum = 0;    ///< 0 unless run.check_moves
  std::vector<PeakMemory> peaks; ///< per receiving device
};
TROUPE_INSPECT(MoveDone, x.bytes, x.wire_bytes, x.begin_ns, x.busy_ns,
               x.checksum, x.peaks)

/// Copies the replica's weights to host memory, where they wait for `write`.
struct CopyOrder {
  bool moments = false; ///< whether to copy the optimizer's planes too
};
TROUPE_INSPECT(CopyOrder, x.moments)

struct CopyDone {
  std::uint64_t bytes = 0; ///< size of the weights
};
TROUPE_INSPECT(CopyDone, x.bytes)

/// Writes what was copied as an HF folder, and its state.
struct WriteOrder {
  std::string folder;
  DType dtype = DType::f32; ///< type of the folder's tensors
  std::uint64_t max_shard_bytes = 0;
  std::string state_file; ///< optimizer planes; empty: none
};
TROUPE_INSPECT(WriteOrder, x.folder, x.dtype, x.max_shard_bytes, x.state_file)

struct WriteDone {
  std::uint64_t bytes = 0;
  std::vector<FileWritten> files;
};
TROUPE_INSPECT(WriteDone, x.bytes, x.files)

/// Ends a step: its rows may be freed.
struct CommitOrder {
  StepId step;
};
TROUPE_INSPECT(CommitOrder, x.step)

struct CommitDone {
  std::uint64_t freed_bytes = 0;
};
TROUPE_INSPECT(CommitDone, x.freed_bytes)

} // namespace troupe::actors
