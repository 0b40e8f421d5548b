// The devices of one replica on this worker as one: hands each its order and
// sends the master one reply, so that its work grows with the workers. The
// first failure is the reply: other devices may wait for the failed one for
// ever. Parent: the node actor, which fails what is open when the run fails.
#pragma once

#include "actors/protocol/ask.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

struct LocalMeshSetup {
  std::string replica; ///< its name
  WorkerId worker;
  std::vector<Rank> ranks; ///< in mesh order
  std::vector<ShardActor> shards;
  std::shared_ptr<AskTable> asks; ///< of this process
};

struct LocalMeshState {
  std::string name;
  Asks asks;
  LocalMeshSetup setup;
};

LocalMeshActor::behavior_type
local_mesh_actor(Self<LocalMeshActor, LocalMeshState> self,
                 LocalMeshSetup setup);

} // namespace troupe::actors
