// Every typed interface between CAF actors, with the messages that it handles,
// one comment each. The structs are in the five *_messages and message_parts
// beside this; the first argument of each message is its `Context`, which
// carries the arrow of the trace.
#pragma once

#include "actors/protocol/local_mesh_messages.hpp"
#include "actors/protocol/master_messages.hpp"
#include "actors/protocol/residency_messages.hpp"

namespace troupe::actors {

template <class Atom, class Order, class Done>
using handles =
  typename caf::replies_to<Atom, Context, Order>::template with<Done>;

/// Notifies an actor that a job on its device thread has ended.
using job_done = caf::reacts_to<done_atom, std::uint64_t>;
/// Notifies an actor that the call table gave up on one of its asks (AskTable).
using ask_failed = caf::reacts_to<fail_atom, std::uint64_t, FailureMessage>;

/// One device's part of one replica.
using ShardActor = caf::typed_actor<
  handles<load_atom, LoadOrder, LoadDone>,    // fill the weights
  handles<fetch_atom, FetchOrder, FetchDone>, // make a task's rows local
  handles<run_atom, RunOrder, RunDone>,       // this device's part of a call
  handles<publish_weights_atom, PublishOrder,
          PublishDone>,                    // confirm the version to read from
  handles<move_atom, MoveOrder, MoveDone>, // overwrite weights by a move
  handles<residency_atom, ResidencyOrder, ResidencyDone>, // reload or offload
  handles<copy_atom, CopyOrder, CopyDone>,                // copy its weights
  handles<write_atom, WriteOrder, WriteDone>, // write the copied weights
  handles<snapshot_atom, SnapshotOrder, SnapshotDone>, // copy to host memory
  job_done>;

template <class Atom, class Order, class Done>
using hands_out = handles<Atom, LocalMeshOrder<Order>, LocalMeshDone<Done>>;

/// The devices of one replica on one worker: hands each its order and joins
/// the replies.
using LocalMeshActor
  = caf::typed_actor<hands_out<load_atom, LoadOrder, LoadDone>,
                     hands_out<fetch_atom, FetchOrder, FetchDone>,
                     hands_out<run_atom, RunOrder, RunDone>,
                     hands_out<publish_weights_atom, PublishOrder, PublishDone>,
                     hands_out<move_atom, MoveOrder, MoveDone>,
                     hands_out<residency_atom, ResidencyOrder, ResidencyDone>,
                     hands_out<snapshot_atom, SnapshotOrder, SnapshotDone>,
                     ask_failed>;

/// Runs calls without weights where the rows are.
using FunctionActor
  = caf::typed_actor<handles<fetch_atom, FetchOrder, FetchDone>,
                     handles<run_atom, RunOrder, RunDone>, job_done>;

struct LocalMeshEntry {
  ReplicaId replica;
  std::vector<Rank> ranks; ///< in mesh order
  LocalMeshActor local_mesh;
};
TROUPE_INSPECT(LocalMeshEntry, x.replica, x.ranks, x.local_mesh)

/// The shard that writes a replica: that of its first device.
struct WriterEntry {
  ReplicaId replica;
  ShardActor shard;
};
TROUPE_INSPECT(WriterEntry, x.replica, x.shard)

struct SetupDone {
  std::vector<LocalMeshEntry> local_meshes;
  std::vector<WriterEntry> writers;
  FunctionActor function;
  bool shares_files = true; ///< whether its host sees the master's files
};
TROUPE_INSPECT(SetupDone, x.local_meshes, x.writers, x.function, x.shares_files)

/// A worker process: its shards, device threads, heartbeats and stop flags.
using NodeActor = caf::typed_actor<
  handles<setup_atom, SetupOrder, SetupDone>,     // spawn shards and functions
  handles<commit_atom, CommitOrder, CommitDone>,  // rows of a step may be freed
  handles<copy_atom, CopyRowsOrder, CopyDone>,    // keep these rows
  handles<write_atom, WriteRowsOrder, WriteDone>, // write the kept rows
  handles<load_atom, LoadRowsOrder, LoadDone>,    // load rows of a checkpoint
  handles<snapshot_atom, SnapshotCopyOrder, SnapshotDone>, // of another node
  handles<ping_atom, PingOrder, HeartbeatReply>,           // heartbeat
  caf::reacts_to<abort_atom, FailureMessage>, // stop all work: the run failed
  caf::reacts_to<stop_atom>,                  // orderly end of the process
  caf::reacts_to<tick_atom>, // check that the master still pings
  job_done>;

struct JoinAccepted {
  JoinReply join_reply;
};
TROUPE_INSPECT(JoinAccepted, x.join_reply)

/// The published endpoint of a run: checks the token and admits workers.
using JoinActor = caf::typed_actor<
  caf::replies_to<join_atom, JoinRequest, NodeActor>::with<JoinAccepted>,
  caf::reacts_to<join_atom, std::uint32_t>>; // a worker has its reply

/// Receives what workers report in heartbeats; the trace actor is one.
using HeartbeatListener
  = caf::typed_actor<caf::reacts_to<ping_atom, std::uint32_t, HeartbeatReply>>;

/// Tracks whether workers are alive, from joining to the end of the run.
using HeartbeatActor = caf::typed_actor<
  caf::reacts_to<join_atom, std::uint32_t, std::string, NodeActor>, // ping it
  caf::reacts_to<ping_atom, HeartbeatListener>, // forward heartbeat replies
  caf::reacts_to<stop_atom>, // end the workers' processes in order
  caf::reacts_to<tick_atom>, ask_failed>;

/// Splits one call over its mesh.
using CallActor
  = caf::typed_actor<handles<run_atom, CallTask, CallDone>, ask_failed>;

/// One (source, target) pair of replicas.
using MoveActor
  = caf::typed_actor<handles<run_atom, MoveTask, MoveDone>, ask_failed>;

/// Residency of the planes of one replica.
using ResidencyActor
  = caf::typed_actor<handles<run_atom, ResidencyOrder, ResidencyDone>,
                     ask_failed>;

/// Data-set position, epochs, shuffling.
using DataActor = caf::typed_actor<handles<next_atom, NextOrder, DataBatch>>;

/// Checkpoints: commit and retention.
using CheckpointActor
  = caf::typed_actor<handles<save_atom, SaveTask, SaveCopied>,
                     handles<write_atom, WriteTask, SaveDone>, job_done,
                     ask_failed>;

/// The schedule, versions, incarnation.
using MasterActor = caf::typed_actor<
  caf::reacts_to<start_atom>,                     // first step
  caf::reacts_to<stop_atom>,                      // end after this step
  caf::reacts_to<evaluated_atom, FailureMessage>, // evaluation has ended
                                                  // (Errc::ok: success)
  caf::reacts_to<down_atom, FailureMessage>,      // a worker is lost
  caf::reacts_to<ping_atom, std::uint32_t, HeartbeatReply>, // a worker is alive
  ask_failed>;

} // namespace troupe::actors
