// A shard's part of snapshots: after a step, its planes are copied into a
// memory file of this host's keeper, which outlives the worker; after a failure
// they are read back from there.
#pragma once

#include "actors/worker/shard_actor.hpp"

namespace troupe::actors {

/// Returns the thread that may read the shard's planes while weights do not
/// change: its device only if planes leave it between calls.
JobThread& snapshot_thread(const Shard& shard);

/// Copies the planes, unless another device of this host copies equal ones. A
/// copy that fails, as when memory is full, is no snapshot, but no failure of
/// the run.
SnapshotDone snapshot_shard(Shard& shard, StepId step,
                            const SnapshotOrder& order);

/// Reads the planes back. Throws FailureError (stale) if this host does not
/// have them any more.
void restore_shard(Shard& shard, const SnapshotKey& key);

} // namespace troupe::actors
