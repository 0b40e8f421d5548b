// Orders for chunks of a generation that run as one: they come one by one and
// in any order, each after its own rows, and begin when all are there. Which
// they are stands in each of them, so all devices of a mesh begin alike.
#pragma once

#include "actors/open_answers.hpp"
#include "actors/worker_messages.hpp"
#include "net/rows.hpp"

#include <map>
#include <utility>
#include <vector>

namespace troupe::actors {

/// A chunk, or a call that has none.
struct ChunkRun {
  RunOrder order;
  net::Rows rows;
  std::function<void(Result<RunDone>)> done; ///< once, from any thread
};

class ChunkInbox {
public:
  /// All that the chunk joins, in the order of the plan, once it is the last
  /// one to come; until then nothing.
  std::vector<ChunkRun> put(StepId step, ChunkRun chunk);

private:
  std::map<std::pair<StepId, std::uint32_t>, std::vector<ChunkRun>>
    waiting_; ///< by step and first task
};

} // namespace troupe::actors
