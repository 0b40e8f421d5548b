// Orders for chunks of a generation that run as one, or for slices of several
// steps: they arrive one by one and in any order, each after its own rows, and
// begin when all are there. Each order lists all of them, so all devices of a
// mesh begin alike.
#pragma once

#include "actors/protocol/open_replies.hpp"
#include "actors/protocol/worker_messages.hpp"
#include "net/base/rows.hpp"

#include <map>
#include <utility>
#include <vector>

namespace troupe::actors {

/// A chunk or slice, or a call that has none.
struct ChunkRun {
  StepId step;
  RunOrder order;
  net::Rows rows;
  std::function<void(Result<RunDone>)> done; ///< called once, from any thread
};

class ChunkInbox {
public:
  /// Returns all chunks that this one joins, in the order of the plan, if it is
  /// the last one to arrive; otherwise nothing. Of slices the last comes first:
  /// its step is the oldest, and others wait for its responses.
  std::vector<ChunkRun> put(ChunkRun chunk);

private:
  std::map<std::pair<StepId, std::uint32_t>, std::vector<ChunkRun>>
    waiting_; ///< by step and task of the first
};

} // namespace troupe::actors
