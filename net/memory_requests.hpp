// A pull of memory is asked for in requests of bounded size, each of many runs:
// a message a row of a matrix would be slower than its bytes, and one request
// of all would keep rows on the same connection waiting. A pure function.
#pragma once

#include "net/data_plane.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::net {

struct MemoryRequest {
  std::vector<PulledRuns> parts;
  std::uint64_t runs = 0;
  std::uint64_t size_bytes = 0;
};

/// At least one, in order; each of at most kMemoryChunkBytes and
/// kMaxRequestRuns.
std::vector<MemoryRequest> cut_requests(std::span<const PulledRuns> parts);

} // namespace troupe::net
