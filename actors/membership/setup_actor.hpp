// Brings a run up: makes every node spawn its shards, then every shard load its
// weights and every node its rows, then reports all handles. A failure on the
// way is reported once. Parent: the session; it is idle once it has reported.
#pragma once

#include "actors/protocol/ask.hpp"

#include <functional>

namespace troupe::actors {

using SetupActor = caf::typed_actor<caf::reacts_to<start_atom>, ask_failed>;

/// The source of one shard's weights.
struct LoadSpec {
  ReplicaId replica;
  LoadOrder order;
};

/// Actors to set up, with their orders, and callbacks.
struct SetupInputs {
  std::vector<NodeActor> nodes; ///< by worker
  std::vector<Peer> peers;
  AgentEndpoint agents;
  SnapshotKey snapshot;            ///< to be loaded, if it has an id
  std::vector<LoadSpec> loads;     ///< by replica, in order
  std::vector<LoadRowsOrder> rows; ///< by worker
  Incarnation incarnation;
  std::shared_ptr<AskTable> asks;
  std::function<void(std::vector<SetupDone>)> on_ready; ///< by worker
  std::function<void(Failure)> on_failure;
};

struct SetupState {
  std::string name = "setup";
  Asks asks;
  SetupInputs setup;
};

SetupActor::behavior_type setup_actor(Self<SetupActor, SetupState> self,
                                      SetupInputs setup);

} // namespace troupe::actors
