// Commits checkpoints: lets the devices write their parts under a temporary
// name, then commits on a thread of its own (checkpoint_files).
// Parent: the session; a commit under way is finished before the thread ends.
#pragma once

#include "actors/call_actor.hpp"
#include "actors/open_answers.hpp"
#include "plans/replicas.hpp"

#include <filesystem>

namespace troupe::actors {

struct CheckpointSetup {
  std::filesystem::path run_folder;
  std::string run_id;
  plans::Replicas replicas;
  plans::Workflow workflow;
  std::map<ReplicaId, Member> writers; ///< the device that writes each replica
  std::uint32_t keep = 0;
  std::shared_ptr<AskTable> asks;
};

struct CheckpointActorState {
  std::string name = "checkpoint";
  Asks asks;
  OpenAnswers open;
  CheckpointSetup setup;
  std::shared_ptr<DeviceThread> thread;
};

CheckpointActor::behavior_type
checkpoint_actor(Self<CheckpointActor, CheckpointActorState> self,
                 CheckpointSetup setup);

} // namespace troupe::actors
