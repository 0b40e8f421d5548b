#include "actors/worker/chunk_inbox.hpp"

#include <algorithm>

namespace troupe::actors {

std::vector<ChunkRun> ChunkInbox::put(ChunkRun chunk) {
  const auto& [step, tasks] = chunk.order.joined;
  const auto wanted = std::max<std::size_t>(tasks.size(), 1);
  const auto key = tasks.empty() ? std::pair(chunk.step, chunk.order.task)
                                 : std::pair(step, tasks.front());
  auto& waiting = waiting_[key];
  waiting.push_back(std::move(chunk));
  if (waiting.size() < wanted)
    return {};
  auto all = std::move(waiting);
  waiting_.erase(key);
  std::ranges::sort(all, {},
                    [](const ChunkRun& run) { return run.order.task; });
  if (all.front().order.slice.is_cut())
    std::ranges::reverse(all);
  return all;
}

} // namespace troupe::actors
