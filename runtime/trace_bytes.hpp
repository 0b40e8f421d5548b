// When rows and weights were on their way to a device: what an idle device
// waits for, if not for other tasks.
#pragma once

#include "runtime/merged_trace.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace troupe::runtime {

/// Not a host's, a writer's or a scorer's thread.
bool is_device(const trace::TrackInfo& track);

class BytesUnderWay {
public:
  /// Rows: from a `fetch` that reaches a shard to its answer. Weights: the
  /// moves of the device's process.
  explicit BytesUnderWay(const MergedTrace& trace);

  /// Part of [begin, end) during which some were.
  std::int64_t covered_ns(TrackRef device, std::int64_t begin_ns,
                          std::int64_t end_ns) const;

private:
  using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;
  std::map<TrackRef, Spans> by_device_; ///< disjoint, ascending
};

} // namespace troupe::runtime
