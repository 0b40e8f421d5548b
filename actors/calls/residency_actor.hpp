// Residency of one replica's planes: makes all of its devices reload them for a
// call, offload them to host memory after it, or drop them.
// Parent: the session.
#pragma once

#include "actors/calls/local_mesh.hpp"

namespace troupe::actors {

struct ResidencySetup {
  std::string name; ///< name of the replica
  std::vector<LocalMesh> local_meshes;
  std::shared_ptr<AskTable> asks;
};

struct ResidencyState {
  std::string name;
  Asks asks;
  ResidencySetup setup;
};

ResidencyActor::behavior_type
residency_actor(Self<ResidencyActor, ResidencyState> self,
                ResidencySetup setup);

} // namespace troupe::actors
