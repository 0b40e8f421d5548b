// One (source, target) pair of replicas: brings a version of the weights from
// one layout to the other. Sources confirm the version that they publish,
// targets read their own part of it, or sources send it over NCCL; every device
// derives its part on its own.
// Parent: the session.
#pragma once

#include "actors/calls/local_mesh.hpp"
#include "config/base/strategy.hpp"

namespace troupe::actors {

struct MoveSetup {
  std::string name; ///< "actor@actor_gen"
  ReplicaId source;
  ReplicaId target;
  std::vector<LocalMesh> sources;
  Strategy source_strategy;
  Strategy target_strategy;
  std::vector<LocalMesh> targets;
  /// The source's devices once more, if they may have to send; numbered after
  /// the targets.
  std::vector<LocalMesh> senders = {};
  /// By target and sender: 0, or no_order for a sender that is a target too;
  /// empty without senders.
  std::vector<std::uint32_t> order_of = {};
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
