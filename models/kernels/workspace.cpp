#include "models/kernels/workspace.hpp"

#include <algorithm>

namespace troupe::models {

namespace {
constexpr std::int64_t workspace_min_chunk = 1 << 18; // floats: 1 MiB
constexpr std::int64_t workspace_grain = 16;          // floats: 64 bytes
} // namespace

float* Workspace::take(std::int64_t count) {
  const std::int64_t size
    = (std::max<std::int64_t>(count, 1) + workspace_grain - 1) / workspace_grain
      * workspace_grain;
  while (at_.chunk < chunks_.size()
         && at_.used + size > chunks_[at_.chunk].capacity())
    at_ = {at_.chunk + 1, 0, at_.taken};
  if (at_.chunk == chunks_.size())
    add_chunk(std::max({size, workspace_min_chunk, capacity() / 2}));
  float* taken = chunks_[at_.chunk].data() + at_.used;
  at_.used += size;
  at_.taken += size;
  count_taken();
  return taken;
}

void Workspace::add_chunk(std::int64_t count) {
  chunks_.emplace_back(memory_, nullptr).reserve(count);
}

void Workspace::reset() {
  if (chunks_.size() > 1) {
    const std::int64_t total = capacity();
    chunks_.clear();
    add_chunk(total);
  }
  at_ = {};
  count_taken();
}

std::int64_t Workspace::capacity() const {
  std::int64_t total = 0;
  for (const AlignedFloats& chunk : chunks_)
    total += chunk.capacity();
  return total;
}

} // namespace troupe::models
