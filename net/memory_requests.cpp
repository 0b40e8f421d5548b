#include "net/memory_requests.hpp"

#include "net/defaults.hpp"

#include <algorithm>

namespace troupe::net {

namespace {

/// As many of its first runs as there is room for leave `part`.
void take_runs(MemoryRequest& request, PulledRuns& part) {
  PulledRuns taken = part;
  taken.runs = std::min(
    {part.runs, (kMemoryChunkBytes - request.size_bytes) / part.run_bytes,
     kMaxRequestRuns - request.runs});
  if (taken.runs == 0)
    return;
  request.parts.push_back(taken);
  request.runs += taken.runs;
  request.size_bytes += taken.total_bytes();
  part.runs -= taken.runs;
  part.source_offset += taken.runs * part.source_stride;
  if (part.runs > 0)
    part.into += taken.runs * part.into_stride;
}

void append_runs(std::vector<MemoryRequest>& requests, PulledRuns part) {
  for (take_runs(requests.back(), part); part.runs > 0;
       take_runs(requests.back(), part))
    requests.emplace_back();
}

/// Of runs that are longer than a request.
void append_pieces(std::vector<MemoryRequest>& requests,
                   const PulledRuns& part) {
  for (std::uint64_t i = 0; i < part.runs; ++i)
    for (std::uint64_t at = 0; at < part.run_bytes; at += kMemoryChunkBytes)
      append_runs(
        requests,
        {.source_offset = part.source_offset + i * part.source_stride + at,
         .into = part.into + i * part.into_stride + at,
         .run_bytes = std::min(kMemoryChunkBytes, part.run_bytes - at)});
}

} // namespace

std::vector<MemoryRequest> cut_requests(std::span<const PulledRuns> parts) {
  std::vector<MemoryRequest> requests(1);
  for (const PulledRuns& part : parts) {
    if (part.run_bytes <= kMemoryChunkBytes && part.run_bytes > 0)
      append_runs(requests, part);
    else if (part.run_bytes > 0)
      append_pieces(requests, part);
  }
  return requests;
}

} // namespace troupe::net
