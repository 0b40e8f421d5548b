// Brings a run up: lets every node spawn its shards, then every shard load its
// weights and every node its rows, then reports all handles. A failure on the
// way is reported once. Parent: the session; it is idle once it has reported.
#pragma once

#include "actors/ask.hpp"

#include <functional>

namespace troupe::actors {

using SetupActor = caf::typed_actor<caf::reacts_to<start_atom>, ask_failed>;

/// What one shard loads.
struct LoadSpec {
  ReplicaId replica;
  LoadOrder order;
};

struct SetupSetup {
  std::vector<NodeActor> nodes; ///< by worker
  std::vector<Peer> peers;
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
  SetupSetup setup;
};

SetupActor::behavior_type setup_actor(Self<SetupActor, SetupState> self,
                                      SetupSetup setup);

} // namespace troupe::actors
