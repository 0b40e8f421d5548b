// A copy whose stores bypass the caches, for moves of more bytes than caches
// hold: an ordinary store first reads the line that it overwrites, so three
// bytes move per byte copied. Copied data is in no cache afterwards. The next
// run is prefetched explicitly, because a hardware prefetcher cannot predict
// where it begins after a short run.
#pragma once

#include "config/base/byte_runs.hpp"

#include <cstddef>

namespace troupe::models {

/// Copies ranges that do not overlap. Other threads see all of it after
/// `end_stream_copies()`.
void non_temporal_copy(std::byte* target, const std::byte* source,
                       const ByteRuns& runs) noexcept;
void end_stream_copies() noexcept;

} // namespace troupe::models
