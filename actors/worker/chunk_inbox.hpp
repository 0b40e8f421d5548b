// Orders for chunks of a generation that run as one: they arrive one by one and
// in any order, each after its own rows, and begin when all are there. Each
// order lists all of them, so all devices of a mesh begin alike.
#pragma once

#include "actors/protocol/open_replies.hpp"
#include "actors/protocol/worker_messages.hpp"
#include "net/base/rows.hpp"

#include <map>
#include <utility>
#include <vector>

namespace troupe::actors {

/// A chunk, or a call that has none.
struct ChunkRun {
  RunOrder order;
  net::Rows rows;
  std::function<void(Result<RunDone>)> done; ///< called once, from any thread
};

class ChunkInbox {
public:
  /// Returns all chunks that this one joins, in the order of the plan, if it is
  /// the last one to arrive; otherwise nothing.
  std::vector<ChunkRun> put(StepId step, ChunkRun chunk);

private:
  std::map<std::pair<StepId, std::uint32_t>, std::vector<ChunkRun>>
    waiting_; ///< by step and first task
};

} // namespace troupe::actors
