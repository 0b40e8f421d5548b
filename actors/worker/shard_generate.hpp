// Generation on a device: chunks of a call that share a running batch, slices
// of several steps that do, or a call that has none. Each chunk's rows go to
// the stash, and its reply to the call, as soon as its own samples are done.
#pragma once

#include "actors/worker/shard_actor.hpp"

namespace troupe::actors {

/// Runs the chunks on the device thread. `done` of each chunk is called once; a
/// failure, attributed to `who`, applies to all chunks that are not done.
void generate_chunks(Shard& shard, const std::string& who,
                     const std::vector<ChunkRun>& chunks);

} // namespace troupe::actors
