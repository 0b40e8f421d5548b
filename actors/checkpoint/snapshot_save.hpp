// Makes a snapshot: every device copies its planes into its host's memory, rows
// of calls in flight are written beside the record. The record, which makes it
// the one to continue from, is written by the session after the step's metrics.
// A copy that fails does not end the run; the attempt makes no further ones.
#pragma once

#include "actors/checkpoint/checkpoint_actor.hpp"

#include <functional>

namespace troupe::actors {

/// Copies the snapshot that was loaded to other nodes again: a host may be new.
void begin_snapshots(Self<CheckpointActor, CheckpointActorState> self);

/// Calls exactly one of `on_done` and `on_failure`, once. Makes none while the
/// record of the one before is not written, or other nodes still copy it: its
/// slot must stay.
void make_snapshot(Self<CheckpointActor, CheckpointActorState> self,
                   const Context& context, const SaveTask& task,
                   std::function<void(SaveCopied)> on_done,
                   std::function<void(const Failure&)> on_failure);

} // namespace troupe::actors
