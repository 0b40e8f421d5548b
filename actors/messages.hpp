// Every typed interface and every message between CAF actors, one comment each.
// Control only: small structs, no tensors, and no floating point at all (CAF
// 0.17 hangs on infinities): numbers travel as `Bits`. The first argument of
// each message is its `Context`, which carries the arrow of the trace.
#pragma once

#include "config/ids.hpp"

#include <caf/all.hpp>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

template <class Inspector, class Tag>
typename Inspector::result_type inspect(Inspector& f, Id<Tag>& id) {
  return f(id.value);
}

} // namespace troupe

namespace troupe::actors {

// -- atoms (at most ten characters) ------------------------------------------

using join_atom = caf::atom_constant<caf::atom("join")>;
using setup_atom = caf::atom_constant<caf::atom("setup")>;
using load_atom = caf::atom_constant<caf::atom("load")>;
using fetch_atom = caf::atom_constant<caf::atom("fetch")>;
using run_atom = caf::atom_constant<caf::atom("run")>;
using lend_atom = caf::atom_constant<caf::atom("lend")>;
using move_atom = caf::atom_constant<caf::atom("move")>;
using write_atom = caf::atom_constant<caf::atom("write")>;
using commit_atom = caf::atom_constant<caf::atom("commit")>;
using save_atom = caf::atom_constant<caf::atom("save")>;
using next_atom = caf::atom_constant<caf::atom("next")>;
using ping_atom = caf::atom_constant<caf::atom("ping")>;
using abort_atom = caf::atom_constant<caf::atom("abort")>;
using stop_atom = caf::atom_constant<caf::atom("stop")>;
using start_atom = caf::atom_constant<caf::atom("start")>;
using done_atom = caf::atom_constant<caf::atom("done")>;
using down_atom = caf::atom_constant<caf::atom("down")>;
using tick_atom = caf::atom_constant<caf::atom("tick")>;
using fail_atom = caf::atom_constant<caf::atom("fail")>;

// -- parts of messages -------------------------------------------------------

/// First argument of every message: who sees which arrow, and of which life.
struct Context {
  std::uint64_t flow
    = 0;       ///< id of the arrow in the trace, minted by the sender
  StepId step; ///< step it belongs to; 0 before the first
  Incarnation incarnation;
};

/// A double as its bit pattern.
struct Bits {
  std::uint64_t value = 0;

  Bits() = default;
  explicit Bits(double number) : value(std::bit_cast<std::uint64_t>(number)) {}
  double number() const {
    return std::bit_cast<double>(value);
  }
};

/// How a metric's contributions combine (models::Sums).
struct SumPart {
  std::string name;
  std::uint8_t kind = 0; ///< models::SumKind
  Bits sum;
  Bits weight;
};

/// A value carried from step n to n+1.
struct Carried {
  std::string name;
  Bits value;
};

/// `holder` of rows that every worker reads from the data set itself.
inline constexpr std::uint32_t dataset_holder = 0xFFFF'FFFF;

/// Who holds some keys of some samples.
struct RowSource {
  std::uint32_t holder = dataset_holder; ///< worker number
  std::vector<std::string> keys;
  std::vector<SampleId> samples;   ///< in sample order
  std::vector<std::uint32_t> rows; ///< data-set row of each; data set only
};

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

/// What a worker must know; it parses the same texts as the master did.
struct Welcome {
  WorkerId worker;
  Incarnation incarnation;
  std::string run_id; ///< random; names shared memory and groups
  std::string settings_yaml;
  std::string plan_yaml;
  std::string run_folder;
};

struct Peer {
  WorkerId worker;
  std::string host;
  std::uint16_t data_port = 0;
};

/// The roster, once all workers have joined.
struct SetupOrder {
  std::vector<Peer> peers;
};

/// Build a replica and load its weights: the role's folder, or a checkpoint.
struct LoadOrder {
  Version version;
  std::string folder;      ///< HF folder
  std::string state_file;  ///< optimizer planes; empty: start fresh
  bool shape_only = false; ///< a move will bring the weights
};

struct LoadDone {
  std::uint64_t bytes = 0;
};

/// The master lives; and you?
struct PingOrder {};

/// Heartbeat: the device threads' progress counters, device by device.
struct Pong {
  std::vector<Rank> devices;
  std::vector<std::uint64_t> progress;
  std::uint64_t memory_bytes = 0; ///< resident size of the process
  std::uint64_t stash_bytes = 0;
  std::uint64_t dropped_events = 0;
};

// -- work --------------------------------------------------------------------

/// Make rows local before `run`.
struct FetchOrder {
  std::uint32_t task = 0;
  std::vector<RowSource> sources;
};

struct FetchDone {
  std::uint64_t bytes = 0; ///< over the network
};

/// One device's part of a call.
struct RunOrder {
  std::uint32_t task = 0;
  std::string call;
  Version version; ///< that the weights must have (I4)
  std::vector<std::vector<SampleId>>
    batches; ///< mini-batches in order; else one
  std::uint32_t epochs = 1;
  std::vector<Carried> carried;
};

struct RunDone {
  WorkerId holder;
  std::vector<SampleId> samples;
  std::vector<std::uint32_t> tokens; ///< per sample, where sequences were made
  std::vector<std::string> keys;     ///< written, now in the holder's stash
  std::vector<SumPart> sums;
  std::vector<Carried> carried;
  std::uint64_t begin_ns = 0; ///< steady clock of the worker
  std::uint64_t busy_ns = 0;
  std::uint64_t bytes = 0; ///< of the rows made
};

/// Check that the weights are at `version` and stay so until the move ends.
struct LendOrder {
  std::uint32_t task = 0;
  Version version;
};

struct LendDone {
  std::uint64_t checksum = 0; ///< 0 unless run.check_moves
};

/// Overwrite this shard's weights with version `version` of another replica.
struct MoveOrder {
  std::uint32_t task = 0;
  ReplicaId source;
  Version version;
};

struct MoveDone {
  std::uint64_t bytes = 0;
  std::uint64_t wire_bytes = 0;
  std::uint64_t begin_ns = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t checksum = 0; ///< 0 unless run.check_moves
};

/// Write the replica's weights as a HF folder, and its state.
struct WriteOrder {
  std::string folder;     ///< HF folder to make; empty: weights are not saved
  std::string state_file; ///< optimizer planes; empty: none
};

struct WriteDone {
  std::uint64_t bytes = 0;
};

/// The end of a step: its rows may go.
struct CommitOrder {
  StepId step;
};

struct CommitDone {
  std::uint64_t freed_bytes = 0;
};

// -- master process ----------------------------------------------------------

/// A whole call of one step, as the master hands it to its call actor.
struct CallTask {
  std::uint32_t task = 0;
  Version version;
  std::vector<RowSource> sources;    ///< of the keys that the call reads
  std::vector<std::uint32_t> tokens; ///< of each sample of the step
  std::vector<Carried> carried;
};

struct CallDone {
  std::vector<RunDone> parts; ///< in order of the mesh
  std::uint64_t fetched_bytes = 0;
};

struct MoveTask {
  std::uint32_t task = 0;
  Version version;
};

/// The rows of the context's step, please.
struct NextOrder {};

/// Which rows of the data set a step trains on.
struct DataBatch {
  std::vector<std::uint32_t> rows;   ///< data-set row of each prompt
  std::vector<std::uint32_t> tokens; ///< length of each prompt or sequence
  std::uint32_t epoch = 0;           ///< of the first row
};

/// Write a checkpoint of everything as of the end of `step`.
struct SaveTask {
  StepId step;
  std::vector<Carried> carried;
  std::vector<ReplicaId> replicas; ///< indices into plans::Replicas
  std::vector<Version> versions;   ///< of each
};

struct SaveDone {
  std::string folder;
  std::uint64_t bytes = 0;
};

#define TROUPE_INSPECT(Type, ...)                                              \
  template <class Inspector>                                                   \
  typename Inspector::result_type inspect(Inspector& f, Type& x) {             \
    return f(caf::meta::type_name(#Type), __VA_ARGS__);                        \
  }

TROUPE_INSPECT(Context, x.flow, x.step, x.incarnation)
TROUPE_INSPECT(Bits, x.value)
TROUPE_INSPECT(SumPart, x.name, x.kind, x.sum, x.weight)
TROUPE_INSPECT(Carried, x.name, x.value)
TROUPE_INSPECT(RowSource, x.holder, x.keys, x.samples, x.rows)
TROUPE_INSPECT(JoinRequest, x.token, x.build, x.host, x.data_port, x.pid,
               x.wanted)
TROUPE_INSPECT(Welcome, x.worker, x.incarnation, x.run_id, x.settings_yaml,
               x.plan_yaml, x.run_folder)
TROUPE_INSPECT(Peer, x.worker, x.host, x.data_port)
TROUPE_INSPECT(SetupOrder, x.peers)
TROUPE_INSPECT(LoadOrder, x.version, x.folder, x.state_file, x.shape_only)
TROUPE_INSPECT(LoadDone, x.bytes)
TROUPE_INSPECT(Pong, x.devices, x.progress, x.memory_bytes, x.stash_bytes,
               x.dropped_events)
TROUPE_INSPECT(FetchOrder, x.task, x.sources)
TROUPE_INSPECT(FetchDone, x.bytes)
TROUPE_INSPECT(RunOrder, x.task, x.call, x.version, x.batches, x.epochs,
               x.carried)
TROUPE_INSPECT(RunDone, x.holder, x.samples, x.tokens, x.keys, x.sums,
               x.carried, x.begin_ns, x.busy_ns, x.bytes)
TROUPE_INSPECT(LendOrder, x.task, x.version)
TROUPE_INSPECT(LendDone, x.checksum)
TROUPE_INSPECT(MoveOrder, x.task, x.source, x.version)
TROUPE_INSPECT(MoveDone, x.bytes, x.wire_bytes, x.begin_ns, x.busy_ns,
               x.checksum)
TROUPE_INSPECT(WriteOrder, x.folder, x.state_file)
TROUPE_INSPECT(WriteDone, x.bytes)
TROUPE_INSPECT(CommitOrder, x.step)
TROUPE_INSPECT(CommitDone, x.freed_bytes)
TROUPE_INSPECT(CallTask, x.task, x.version, x.sources, x.tokens, x.carried)
TROUPE_INSPECT(CallDone, x.parts, x.fetched_bytes)
TROUPE_INSPECT(MoveTask, x.task, x.version)
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PingOrder&) {
  return f(caf::meta::type_name("PingOrder"));
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, NextOrder&) {
  return f(caf::meta::type_name("NextOrder"));
}
TROUPE_INSPECT(DataBatch, x.rows, x.tokens, x.epoch)
TROUPE_INSPECT(SaveTask, x.step, x.carried, x.replicas, x.versions)
TROUPE_INSPECT(SaveDone, x.folder, x.bytes)

// -- interfaces --------------------------------------------------------------

/// A failure as a message: asks that `fail_atom` ends carry one.
struct Trouble {
  std::uint8_t code = 0;
  std::string who;
  std::string what;
  std::string cause;
};
TROUPE_INSPECT(Trouble, x.code, x.who, x.what, x.cause)

template <class Atom, class Order, class Done>
using handles =
  typename caf::replies_to<Atom, Context, Order>::template with<Done>;

/// A job on the device thread ended (from the actor's own device thread).
using job_done = caf::reacts_to<done_atom, std::uint64_t>;
/// The call table gives up on one of this actor's asks (AskTable).
using ask_failed = caf::reacts_to<fail_atom, std::uint64_t, Trouble>;

/// One device's part of one replica.
using ShardActor = caf::typed_actor<
  handles<load_atom, LoadOrder, LoadDone>,    // fill the weights
  handles<fetch_atom, FetchOrder, FetchDone>, // make a task's rows local
  handles<run_atom, RunOrder, RunDone>,       // this device's part of a call
  handles<lend_atom, LendOrder, LendDone>, // confirm the version to read from
  handles<move_atom, MoveOrder, MoveDone>, // overwrite weights by a move
  handles<write_atom, WriteOrder, WriteDone>, // part of a checkpoint
  job_done>;

/// Runs calls without weights where the rows are.
using FunctionActor
  = caf::typed_actor<handles<fetch_atom, FetchOrder, FetchDone>,
                     handles<run_atom, RunOrder, RunDone>, job_done>;

struct ShardEntry {
  ReplicaId replica;
  Rank rank;
  ShardActor shard;
};
TROUPE_INSPECT(ShardEntry, x.replica, x.rank, x.shard)

struct SetupDone {
  std::vector<ShardEntry> shards;
  FunctionActor function;
};
TROUPE_INSPECT(SetupDone, x.shards, x.function)

/// A worker process: its shards, device threads, heartbeats and stop flags.
using NodeActor = caf::typed_actor<
  handles<setup_atom, SetupOrder, SetupDone>,    // spawn shards and functions
  handles<commit_atom, CommitOrder, CommitDone>, // rows of a step may go
  handles<ping_atom, PingOrder, Pong>,           // heartbeat
  caf::reacts_to<abort_atom, Trouble>, // stop what runs: somebody failed
  caf::reacts_to<stop_atom>,           // orderly end of the process
  caf::reacts_to<tick_atom>>;          // looks whether the master still pings

struct JoinAnswer {
  Welcome welcome;
};
TROUPE_INSPECT(JoinAnswer, x.welcome)

/// The published door of a run: checks the token and admits workers.
using LobbyActor = caf::typed_actor<
  caf::replies_to<join_atom, JoinRequest, NodeActor>::with<JoinAnswer>,
  caf::reacts_to<tick_atom>>; // after an answer: is the run complete?

/// How one call splits over its mesh.
using CallActor
  = caf::typed_actor<handles<run_atom, CallTask, CallDone>, ask_failed>;

/// One (source, target) pair of replicas.
using MoveActor
  = caf::typed_actor<handles<run_atom, MoveTask, MoveDone>, ask_failed>;

/// Data-set position, epochs, shuffling.
using DataActor = caf::typed_actor<handles<next_atom, NextOrder, DataBatch>>;

/// Checkpoints: commit and retention.
using CheckpointActor = caf::typed_actor<handles<save_atom, SaveTask, SaveDone>,
                                         job_done, ask_failed>;

/// The schedule, versions, incarnation.
using MasterActor = caf::typed_actor<
  caf::reacts_to<start_atom>,                        // first step
  caf::reacts_to<stop_atom>,                         // end after this step
  caf::reacts_to<down_atom, std::uint32_t, Trouble>, // a worker is gone
  caf::reacts_to<tick_atom>, ask_failed>;

/// Clock offsets, drops and the end of tracing in this run.
using TraceActor = caf::typed_actor<
  caf::reacts_to<ping_atom, std::uint32_t, Pong>>; // a worker's heartbeat

} // namespace troupe::actors
