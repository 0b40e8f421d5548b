// Jobs of a shard on its device thread: plain functions over a Shard, without
// actors. They throw; the shard actor turns that into failures.
#pragma once

#include "actors/worker/shard_actor.hpp"

namespace troupe::actors {

LoadDone load_shard(Shard& shard, const LoadOrder& order);
/// Runs all kinds of calls but generation (shard_generate.hpp).
RunDone run_shard(Shard& shard, StepId step, const RunOrder& order,
                  const net::Rows& rows);
/// Writes the shard's snapshot on the worker's writer thread.
WriteDone write_shard(Shard& shard, StepId step, const WriteOrder& order);

models::RunContext run_context(Shard& shard, StepId step);
/// Returns whether this is, among the devices that have the same samples, the
/// one whose results count.
bool gives_results(const Shard& shard);

} // namespace troupe::actors
