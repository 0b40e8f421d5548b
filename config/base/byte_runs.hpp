// Runs of bytes to be moved from one memory to another with a fixed stride at
// either end: the columns of a matrix are one run per row. The two base
// addresses are passed to the code that copies, averages or pulls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe {

struct ByteRuns {
  std::uint64_t source_offset = 0; ///< offset of the first run
  std::uint64_t target_offset = 0;
  std::uint64_t bytes = 0; ///< bytes per run
  std::uint64_t runs = 1;
  std::uint64_t source_stride = 0; ///< from run to run; 0 for one run
  std::uint64_t target_stride = 0;

  auto operator<=>(const ByteRuns&) const = default;
  std::uint64_t total_bytes() const {
    return runs * bytes;
  }
  /// Removes the first `count` runs and returns them.
  ByteRuns take_first(std::uint64_t count) {
    ByteRuns first = *this;
    first.runs = count;
    runs -= count;
    source_offset += count * source_stride;
    target_offset += count * target_stride;
    return first;
  }
  /// Calls each(runs) for all bytes in order, with runs of at most `most`
  /// bytes: longer runs are split.
  template <class Each>
  void in_runs_up_to(std::uint64_t most, Each each) const {
    if (bytes <= most)
      return bytes > 0 ? each(*this) : void();
    for (std::uint64_t i = 0; i < runs; ++i)
      for (std::uint64_t at = 0; at < bytes; at += most)
        each(ByteRuns{.source_offset = source_offset + i * source_stride + at,
                      .target_offset = target_offset + i * target_stride + at,
                      .bytes = std::min(most, bytes - at)});
  }
};

/// Copies runs within the host's memory.
inline void copy_runs(const ByteRuns& runs, const void* from, void* to) {
  const auto* source = static_cast<const std::byte*>(from) + runs.source_offset;
  auto* target = static_cast<std::byte*>(to) + runs.target_offset;
  for (std::uint64_t i = 0; i < runs.runs; ++i)
    std::memcpy(target + i * runs.target_stride,
                source + i * runs.source_stride, runs.bytes);
}

} // namespace troupe
