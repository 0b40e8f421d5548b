// Times at which rows and weights were in transit to a device: what an idle
// device waits for, if not for other tasks.
#pragma once

#include "runtime/trace/merged_trace.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace troupe::runtime {

/// Returns whether the track is a device's, not a host's, a writer's or a
/// scorer's thread.
bool is_device(const trace::TrackInfo& track);

class BytesUnderWay {
public:
  /// Collects transits. Rows: from a `fetch` that reaches a shard to its reply.
  /// Weights: the moves of the device's process.
  explicit BytesUnderWay(const MergedTrace& trace);

  /// Returns the part of [begin, end) during which some were in transit.
  std::int64_t covered_ns(TrackRef device, std::int64_t begin_ns,
                          std::int64_t end_ns) const;

private:
  using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;
  std::map<TrackRef, Spans> by_device_; ///< disjoint, ascending
};

} // namespace troupe::runtime
