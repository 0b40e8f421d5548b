// Commits checkpoints in two steps: makes the devices copy what is to be saved,
// which is all that training waits for; then makes the workers write the copies
// in the background, under a temporary name, and commits on a thread of its own
// (checkpoint_files). One save at a time, so memory is bounded.
// Parent: the session; a commit in progress is finished before the thread ends.
#pragma once

#include "actors/calls/local_mesh.hpp"
#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/checkpoint/snapshot_record.hpp"
#include "actors/protocol/open_replies.hpp"
#include "models/engine/snapshot.hpp"
#include "plans/weights/replicas.hpp"

#include <atomic>
#include <filesystem>
#include <memory>

namespace troupe::actors {

class BestCheckpoint;

/// The contents of snapshots, and what there is already.
struct SnapshotSetup {
  std::map<ReplicaId, std::vector<LocalMesh>>
    local_meshes;          ///< of the replicas in them
  std::string plan;        ///< for the record
  bool has_copies = false; ///< whether other nodes keep copies of them
  std::optional<SnapshotRecord> loaded; ///< what the attempt began with
  Incarnation incarnation;
  /// Number of the snapshot whose record was written last; not null.
  std::shared_ptr<const std::atomic<std::uint64_t>> recorded;
};

/// The device that writes a replica.
struct Writer {
  ShardActor shard;
  WorkerId worker;
  std::string name; ///< "device 3"
};

struct CheckpointSetup {
  std::filesystem::path run_folder;
  std::string run_id;
  plans::Replicas replicas;
  plans::Workflow workflow;
  std::map<ReplicaId, Writer> writers;
  std::vector<NodeActor> nodes; ///< by worker: write rows
  /// Settings by which each role's folder is written.
  std::map<std::string, models::HfStore> stores;
  std::uint32_t keep = 0;
  std::shared_ptr<BestCheckpoint> best; ///< kept too; nullptr: none
  SnapshotSetup snapshots;
  std::shared_ptr<AskTable> asks;
};

/// Returns the contents of a checkpoint or snapshot besides planes.
CheckpointState state_of(const CheckpointSetup& setup, const SaveTask& task);

struct SnapshotState {
  std::optional<SnapshotRecord> last; ///< newest one that is whole
  bool copying = false;               ///< other nodes copy the last one
  bool gave_up = false;        ///< one could not be made: no further ones
  bool gave_up_copies = false; ///< one could not be copied: no further copies
};

struct CheckpointActorState {
  std::string name = "checkpoint";
  std::optional<SaveTask> copied; ///< waits for its write
  SnapshotState snapshots;
  Asks asks;
  OpenReplies open;
  CheckpointSetup setup;
  std::shared_ptr<JobThread> thread;
};

CheckpointActor::behavior_type
checkpoint_actor(Self<CheckpointActor, CheckpointActorState> self,
                 CheckpointSetup setup);

} // namespace troupe::actors
