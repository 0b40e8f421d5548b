// Every typed interface between CAF actors: who understands what, one comment
// each. The structs are in the four *_messages and message_parts beside this;
// the first argument of each message is its `Context`, which carries the arrow
// of the trace.
#pragma once

#include "actors/life_messages.hpp"
#include "actors/master_messages.hpp"

namespace troupe::actors {

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
  handles<life_atom, LifeOrder, LifeDone>, // planes come and go
  handles<copy_atom, CopyOrder, CopyDone>, // weights as of now, for ..
  handles<write_atom, WriteOrder, WriteDone>, // .. its part of a checkpoint
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
  handles<setup_atom, SetupOrder, SetupDone>,     // spawn shards and functions
  handles<commit_atom, CommitOrder, CommitDone>,  // rows of a step may go
  handles<copy_atom, CopyRowsOrder, CopyDone>,    // rows as of now, for ..
  handles<write_atom, WriteRowsOrder, WriteDone>, // .. a checkpoint
  handles<load_atom, LoadRowsOrder, LoadDone>,    // rows of a checkpoint
  handles<ping_atom, PingOrder, Pong>,            // heartbeat
  caf::reacts_to<abort_atom, Trouble>, // stop what runs: somebody failed
  caf::reacts_to<stop_atom>,           // orderly end of the process
  caf::reacts_to<tick_atom>,           // looks whether the master still pings
  job_done>;

struct JoinAnswer {
  Welcome welcome;
};
TROUPE_INSPECT(JoinAnswer, x.welcome)

/// The published door of a run: checks the token and admits workers.
using LobbyActor = caf::typed_actor<
  caf::replies_to<join_atom, JoinRequest, NodeActor>::with<JoinAnswer>,
  caf::reacts_to<join_atom, std::uint32_t>>; // a worker has its answer

/// Hears what workers say of themselves; the trace actor is one.
using PongListener
  = caf::typed_actor<caf::reacts_to<ping_atom, std::uint32_t, Pong>>;

/// Whether workers live, from joining to the end of the run.
using HeartbeatActor = caf::typed_actor<
  caf::reacts_to<join_atom, std::uint32_t, std::string, NodeActor>, // asks it
  caf::reacts_to<ping_atom, PongListener>, // passes on what workers say
  caf::reacts_to<stop_atom>, // ends the workers' processes in good order
  caf::reacts_to<tick_atom>, ask_failed>;

/// How one call splits over its mesh.
using CallActor
  = caf::typed_actor<handles<run_atom, CallTask, CallDone>, ask_failed>;

/// One (source, target) pair of replicas.
using MoveActor
  = caf::typed_actor<handles<run_atom, MoveTask, MoveDone>, ask_failed>;

/// Where the planes of one replica are.
using LifeActor
  = caf::typed_actor<handles<run_atom, LifeOrder, LifeDone>, ask_failed>;

/// Data-set position, epochs, shuffling.
using DataActor = caf::typed_actor<handles<next_atom, NextOrder, DataBatch>>;

/// Checkpoints: commit and retention.
using CheckpointActor
  = caf::typed_actor<handles<save_atom, SaveTask, SaveCopied>,
                     handles<write_atom, WriteTask, SaveDone>, job_done,
                     ask_failed>;

/// The schedule, versions, incarnation.
using MasterActor = caf::typed_actor<
  caf::reacts_to<start_atom>,           // first step
  caf::reacts_to<stop_atom>,            // end after this step
  caf::reacts_to<judged_atom, Trouble>, // evaluation is over (Errc::ok: well)
  caf::reacts_to<down_atom, Trouble>,   // a worker is gone
  caf::reacts_to<ping_atom, std::uint32_t, Pong>, // one that lives
  ask_failed>;

} // namespace troupe::actors
