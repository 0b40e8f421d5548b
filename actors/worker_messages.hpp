// Messages to and from the actors of worker processes: joining, heartbeats, and
// the orders that shards and functions carry out.
#pragma once

#include "actors/message_parts.hpp"

namespace troupe::actors {

// -- worker life -------------------------------------------------------------

/// A worker presents itself.
struct JoinRequest {
  std::string token;
  std::string build; ///< version and registry; must equal the master's
  std::string host;  ///< where its data port listens
  std::uint16_t data_port = 0;
  std::uint32_t pid = 0;
  std::uint32_t wanted = 0xFFFF'FFFF; ///< number that the launcher gave it
};
TROUPE_INSPECT(JoinRequest, x.token, x.build, x.host, x.data_port, x.pid,
               x.wanted)

/// What a worker must know; it parses the same texts as the master did.
struct Welcome {
  WorkerId worker;
  Incarnation incarnation;
  std::string run_id; ///< random; names shared memory and groups
  std::string settings_yaml;
  std::string plan_yaml;
  std::string run_folder;
  std::string data_key; ///< of the index of data.train in the run folder
  bool only_evaluates = false;
  std::map<std::string, CallRoom> rooms; ///< of calls that generate
};
TROUPE_INSPECT(Welcome, x.worker, x.incarnation, x.run_id, x.settings_yaml,
               x.plan_yaml, x.run_folder, x.data_key, x.only_evaluates, x.rooms)

struct Peer {
  WorkerId worker;
  std::string host;
  std::uint16_t data_port = 0;
};
TROUPE_INSPECT(Peer, x.worker, x.host, x.data_port)

/// The roster, once all workers have joined.
struct SetupOrder {
  std::vector<Peer> peers;
};
TROUPE_INSPECT(SetupOrder, x.peers)

/// Build a replica and load its weights: the role's folder, or a checkpoint.
struct LoadOrder {
  Version version;
  std::string folder;      ///< HF folder
  std::string state_file;  ///< optimizer planes; empty: start fresh
  bool shape_only = false; ///< a move will bring the weights
};
TROUPE_INSPECT(LoadOrder, x.version, x.folder, x.state_file, x.shape_only)

struct LoadDone {
  std::uint64_t bytes = 0;
};
TROUPE_INSPECT(LoadDone, x.bytes)

/// The master lives; and you?
struct PingOrder {};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PingOrder&) {
  return f(caf::meta::type_name("PingOrder"));
}

/// Heartbeat: the progress counters of the threads and own actors.
struct Pong {
  std::vector<Rank> devices;
  std::vector<std::uint64_t> progress;
  std::uint64_t memory_bytes = 0; ///< resident size of the process
  std::uint64_t stash_bytes = 0;
  std::uint64_t dropped_events = 0;
  std::string reading; ///< "reads data.train, row 512 of 1000", or empty
};
TROUPE_INSPECT(Pong, x.devices, x.progress, x.memory_bytes, x.stash_bytes,
               x.dropped_events, x.reading)

// -- work --------------------------------------------------------------------

/// Make rows local before `run`.
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
  Version version; ///< that the weights must have (I4)
  std::vector<std::vector<SampleId>>
    batches; ///< mini-batches in order; else one
  std::uint32_t epochs = 1;
  std::vector<Carried> carried;
  bool has_rows = true; ///< false: it reads no rows, so none were fetched
  /// The tasks that run as one, in order, itself among them (CallTask).
  std::vector<std::uint32_t> joined;
};
TROUPE_INSPECT(RunOrder, x.task, x.call, x.version, x.batches, x.epochs,
               x.carried, x.has_rows, x.joined)

struct RunDone {
  WorkerId holder;
  std::vector<SampleId> samples;
  std::vector<std::uint32_t> tokens; ///< per sample, where sequences were made
  std::vector<std::string> keys;     ///< written, now in the holder's stash
  std::vector<SumPart> sums;
  std::vector<Carried> carried;
  std::uint64_t begin_ns = 0; ///< steady clock of the worker
  std::uint64_t busy_ns = 0;
  std::uint64_t bytes = 0;       ///< of the rows made
  std::vector<PeakMemory> peaks; ///< of its device; none of a host's function
};
TROUPE_INSPECT(RunDone, x.holder, x.samples, x.tokens, x.keys, x.sums,
               x.carried, x.begin_ns, x.busy_ns, x.bytes, x.peaks)

/// Check that the weights are at `version` and stay so until the move ends.
struct LendOrder {
  std::uint32_t task = 0;
  Version version;
};
TROUPE_INSPECT(LendOrder, x.task, x.version)

struct LendDone {
  std::uint64_t checksum = 0; ///< 0 unless run.check_moves
};
TROUPE_INSPECT(LendDone, x.checksum)

/// Overwrite this shard's weights with version `version` of another replica.
struct MoveOrder {
  std::uint32_t task = 0;
  ReplicaId source;
  Version version;
};
TROUPE_INSPECT(MoveOrder, x.task, x.source, x.version)

struct MoveDone {
  std::uint64_t bytes = 0;      ///< between devices
  std::uint64_t wire_bytes = 0; ///< of them between processes
  std::uint64_t begin_ns = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t checksum = 0;    ///< 0 unless run.check_moves
  std::vector<PeakMemory> peaks; ///< of devices that received
};
TROUPE_INSPECT(MoveDone, x.bytes, x.wire_bytes, x.begin_ns, x.busy_ns,
               x.checksum, x.peaks)

/// Copy the replica's weights to host memory, where they wait for `write`.
struct CopyOrder {
  bool moments = false; ///< the optimizer's planes too
};
TROUPE_INSPECT(CopyOrder, x.moments)

struct CopyDone {
  std::uint64_t bytes = 0; ///< of weights
};
TROUPE_INSPECT(CopyDone, x.bytes)

/// Write what was copied as a HF folder, and its state.
struct WriteOrder {
  std::string folder;
  std::uint8_t dtype = 0; ///< DType of the folder's tensors
  std::uint64_t max_shard_bytes = 0;
  std::string state_file; ///< optimizer planes; empty: none
};
TROUPE_INSPECT(WriteOrder, x.folder, x.dtype, x.max_shard_bytes, x.state_file)

struct WriteDone {
  std::uint64_t bytes = 0;
};
TROUPE_INSPECT(WriteDone, x.bytes)

/// The end of a step: its rows may go.
struct CommitOrder {
  StepId step;
};
TROUPE_INSPECT(CommitOrder, x.step)

struct CommitDone {
  std::uint64_t freed_bytes = 0;
};
TROUPE_INSPECT(CommitDone, x.freed_bytes)

} // namespace troupe::actors
