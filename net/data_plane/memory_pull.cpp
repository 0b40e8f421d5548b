#include "net/data_plane/memory_pull.hpp"

#include "net/base/defaults.hpp"

#include <algorithm>
#include <utility>

namespace troupe::net {

namespace {

/// Moves as many of the first runs of `part` as fit into `request`.
void take_runs(MemoryRequest& request, ByteRuns& part) {
  const auto count = std::min(
    {part.runs, (kMemoryChunkBytes - request.size_bytes) / part.bytes,
     kMaxRequestRuns - request.runs});
  if (count == 0)
    return;
  request.parts.push_back(part.take_first(count));
  request.runs += count;
  request.size_bytes += count * part.bytes;
}

} // namespace

std::list<MemoryRequest> cut_requests(std::span<const ByteRuns> parts) {
  std::list<MemoryRequest> requests(1);
  for (const ByteRuns& part : parts)
    part.in_runs_up_to(kMemoryChunkBytes, [&](ByteRuns rest) {
      for (take_runs(requests.back(), rest); rest.runs > 0;
           take_runs(requests.back(), rest))
        requests.emplace_back();
    });
  return requests;
}

MemoryPull::MemoryPull(WorkerId from, std::uint64_t id,
                       std::span<const ByteRuns> parts)
  : from_(from),
    id_(id),
    requests_(cut_requests(parts)),
    num_requests_(requests_.size()) {
  for (MemoryRequest& request : requests_) {
    request.pull = this;
    size_bytes_ += request.size_bytes;
  }
}

void MemoryPull::begin(std::byte* into, Counts counts, MemoryDone done) {
  TROUPE_CHECK(!done_, "a pull runs already");
  into_ = into;
  counts_ = std::move(counts);
  done_ = std::move(done);
}

void MemoryPull::send(std::list<MemoryRequest>& to, Incarnation incarnation) {
  incarnation_ = incarnation;
  to.splice(to.end(), requests_);
}

void MemoryPull::came_back(std::list<MemoryRequest>& list,
                           std::list<MemoryRequest>::iterator request,
                           const Failure* failure) {
  requests_.splice(requests_.end(), list, request);
  if (failure != nullptr && !failure_)
    failure_ = *failure;
  if (requests_.size() == num_requests_)
    end(std::exchange(failure_, std::nullopt));
}

void MemoryPull::end(std::optional<Failure> failure) {
  counts_(failure.has_value());
  std::exchange(done_, nullptr)(std::move(failure)); // may pull again
}

} // namespace troupe::net
