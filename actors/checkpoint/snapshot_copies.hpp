// Has the newest snapshot copied to other nodes while the run goes on, so that
// it survives the loss of a host (plans/recovery/snapshot_places). Until that
// is done its slot and the other one stay: one of the two is whole whatever
// host is lost. A copy that fails does not end the run; the attempt makes no
// further ones.
#pragma once

#include "actors/checkpoint/checkpoint_actor.hpp"

namespace troupe::actors {

/// Copies the snapshot, if copies are made.
void copy_to_other_nodes(Self<CheckpointActor, CheckpointActorState> self,
                         const Context& context, const SnapshotKey& key);

} // namespace troupe::actors
