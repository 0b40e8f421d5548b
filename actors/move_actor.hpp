// One (source, target) pair of replicas: brings a version of the weights from
// one layout to the other. Sources confirm the version that they lend, targets
// read their own part of it; every device derives its part by itself.
// Parent: the session.
#pragma once

#include "actors/call_actor.hpp"

namespace troupe::actors {

struct MoveSetup {
  std::string name; ///< "actor@actor_gen"
  ReplicaId source;
  std::vector<Member> sources;
  Strategy source_strategy;
  Strategy target_strategy;
  std::vector<Member> targets;
  bool check = false; ///< compare checksums of both ends
  std::shared_ptr<AskTable> asks;
};

struct MoveState {
  std::string name;
  Asks asks;
  MoveSetup setup;
};

MoveActor::behavior_type move_actor(Self<MoveActor, MoveState> self,
                                    MoveSetup setup);

} // namespace troupe::actors
