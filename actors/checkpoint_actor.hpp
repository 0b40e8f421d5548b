// Commits checkpoints in two steps: lets the devices copy what is to be saved,
// which is all that training waits for; then lets the workers write the copies
// behind it, under a temporary name, and commits on a thread of its own
// (checkpoint_files). One save at a time, so memory is bounded.
// Parent: the session; a commit under way is finished before the thread ends.
#pragma once

#include "actors/call_actor.hpp"
#include "actors/open_answers.hpp"
#include "models/snapshot.hpp"
#include "plans/replicas.hpp"

#include <filesystem>

namespace troupe::actors {

class BestCheckpoint;

struct CheckpointSetup {
  std::filesystem::path run_folder;
  std::string run_id;
  plans::Replicas replicas;
  plans::Workflow workflow;
  std::map<ReplicaId, Member> writers; ///< the device that writes each replica
  std::vector<NodeActor> nodes;        ///< by worker: write rows
  /// How each role's folder is written.
  std::map<std::string, models::HfStore> stores;
  std::uint32_t keep = 0;
  std::shared_ptr<BestCheckpoint> best; ///< kept too; nullptr: none is
  std::shared_ptr<AskTable> asks;
};

struct CheckpointActorState {
  std::string name = "checkpoint";
  std::optional<SaveTask> copied; ///< waits for its write
  Asks asks;
  OpenAnswers open;
  CheckpointSetup setup;
  std::shared_ptr<DeviceThread> thread;
};

CheckpointActor::behavior_type
checkpoint_actor(Self<CheckpointActor, CheckpointActorState> self,
                 CheckpointSetup setup);

} // namespace troupe::actors
