// Commits checkpoints in two steps: makes the devices copy what is to be saved,
// which is all that training waits for; then makes the workers write the copies
// in the background, under a temporary name, and commits on a thread of its own
// (checkpoint_files). One save at a time, so memory is bounded.
// Parent: the session; a commit in progress is finished before the thread ends.
#pragma once

#include "actors/calls/team.hpp"
#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/protocol/open_replies.hpp"
#include "models/engine/snapshot.hpp"
#include "plans/weights/replicas.hpp"

#include <atomic>
#include <filesystem>
#include <memory>

namespace troupe::actors {

class BestCheckpoint;

/// The contents of snapshots, and the slot of the first.
struct SnapshotSetup {
  std::map<ReplicaId, std::vector<Team>> teams; ///< of the replicas in them
  std::string plan;                             ///< for the record
  std::uint32_t slot = 0;                       ///< not the one that was loaded
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

struct CheckpointActorState {
  std::string name = "checkpoint";
  std::optional<SaveTask> copied; ///< waits for its write
  std::uint32_t next_slot = 0;    ///< of snapshots
  std::uint64_t last_snapshot = 0;
  bool gave_up = false; ///< a snapshot could not be made: no further ones
  Asks asks;
  OpenReplies open;
  CheckpointSetup setup;
  std::shared_ptr<JobThread> thread;
};

CheckpointActor::behavior_type
checkpoint_actor(Self<CheckpointActor, CheckpointActorState> self,
                 CheckpointSetup setup);

} // namespace troupe::actors
