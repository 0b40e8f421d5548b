// A worker's part of snapshots: after a step, the planes of its devices are
// copied into memory files of this host's keeper, which outlives the worker,
// and those of another node after that. After a failure planes are read back
// from there, or from the copy on another host.
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

/// Copies the planes of another node that this worker keeps copies of, unless
/// it has them. Waits for the network. Throws FailureError.
SnapshotDone copy_snapshots(WorkerContext& worker, StepId step,
                            const SnapshotCopyOrder& order);

/// Lets workers of other hosts read what this host has of a snapshot.
void lend_snapshots(WorkerContext& worker, const SnapshotKey& key);

/// Reads the planes back. Throws FailureError (stale) if neither this host nor
/// another one has them any more.
void restore_shard(Shard& shard, const SnapshotKey& key);

} // namespace troupe::actors
