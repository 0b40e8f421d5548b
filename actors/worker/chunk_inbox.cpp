#include "actors/worker/chunk_inbox.hpp"

#include <algorithm>

namespace troupe::actors {

std::vector<ChunkRun> ChunkInbox::put(StepId step, ChunkRun chunk) {
  const auto& joined = chunk.order.joined;
  const auto wanted = std::max<std::size_t>(joined.size(), 1);
  const auto first = joined.empty() ? chunk.order.task : joined.front();
  auto& waiting = waiting_[{step, first}];
  waiting.push_back(std::move(chunk));
  if (waiting.size() < wanted)
    return {};
  auto all = std::move(waiting);
  waiting_.erase({step, first});
  std::ranges::sort(all, {},
                    [](const ChunkRun& run) { return run.order.task; });
  return all;
}

} // namespace troupe::actors
