#include "runtime/page/trace_index.hpp"

#include "config/trace/trace_segments.hpp"
#include "runtime/page/trace_walk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace troupe::runtime {

namespace {

constexpr std::uint64_t block_bytes = std::uint64_t{256} << 10;

} // namespace

TraceIndex::TraceIndex(RunFolder folder) : folder_(std::move(folder)) {}

void TraceIndex::update() {
  for (const auto& found : trace::list_traces(folder_.trace_folder())) {
    auto& trace = traces_[found.name];
    const auto oldest = found.segments.front().number;
    std::erase_if(trace.blocks, [&](const Block& block) {
      return block.segment < oldest; // removed for newer ones
    });
    for (const auto& segment : found.segments)
      if (segment.number >= trace.segment)
        walk(segment.path, segment.number, trace);
  }
}

/// Looks at the records of a segment that were not looked at before.
void TraceIndex::walk(const std::filesystem::path& path, std::uint32_t segment,
                      Trace& trace) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return; // removed meanwhile
  if (std::exchange(trace.segment, segment) != segment)
    trace.walked = trace::file_magic.size();
  while (const auto record = walk_record(descriptor, trace.walked)) {
    auto& blocks = trace.blocks;
    const auto before = blocks.empty() ? 0 : blocks.back().last_step;
    if (blocks.empty() || blocks.back().segment != segment
        || blocks.back().end - blocks.back().begin >= block_bytes)
      blocks.push_back({segment, trace.walked, trace.walked, before});
    trace.walked += record->bytes;
    blocks.back().end = trace.walked;
    blocks.back().last_step = std::max(before, record->last_step);
  }
  ::close(descriptor);
}

TraceWindow TraceIndex::window(std::uint32_t first_step,
                               std::uint32_t last_step) const {
  TraceWindow window{first_step, last_step, {}};
  for (const auto& [name, trace] : traces_) {
    const auto& blocks = trace.blocks;
    if (blocks.empty())
      continue;
    auto first = std::ranges::partition_point(
      blocks, [&](const Block& block) { return block.last_step < first_step; });
    auto last = std::ranges::partition_point(
      blocks, [&](const Block& block) { return block.last_step <= last_step; });
    if (first == blocks.end())
      continue; // it ended before
    if (last == blocks.end())
      --last;
    if (first != blocks.begin())
      --first; // it may end with events of the step that no record ends with
    window.parts[name]
      = {first->segment, first->begin, last->segment, last->end};
  }
  return window;
}

std::uint64_t TraceIndex::bytes_of(const Trace& trace, const TracePart& part) {
  const auto place
    = [](const Block& block) { return std::pair(block.segment, block.begin); };
  std::uint64_t bytes = 0;
  for (auto block = std::ranges::lower_bound(
         trace.blocks, std::pair(part.segment, part.begin), {}, place);
       block != trace.blocks.end()
       && place(*block) < std::pair(part.end_segment, part.end);
       ++block)
    bytes += block->end - block->begin;
  return bytes;
}

TraceWindow TraceIndex::around(std::uint32_t step,
                               std::uint64_t max_bytes) const {
  auto best = window(step, step);
  std::uint32_t newest = 0;
  for (const auto& [name, trace] : traces_)
    if (!trace.blocks.empty())
      newest = std::max(newest, trace.blocks.back().last_step);
  for (std::uint64_t more = 1;; more *= 2) {
    const auto first = step - std::min<std::uint64_t>(step, more);
    const auto last = std::max<std::uint64_t>(
      step, std::min<std::uint64_t>(newest, step + more));
    auto wider = window(static_cast<std::uint32_t>(first),
                        static_cast<std::uint32_t>(last));
    std::uint64_t bytes = 0;
    for (const auto& [name, part] : wider.parts)
      bytes += bytes_of(traces_.at(name), part);
    if (bytes > max_bytes)
      return best;
    best = std::move(wider);
    if (first == 0 && last >= newest)
      return best;
  }
}

} // namespace troupe::runtime
