// A compiled pull of memory: cut once into requests of bounded size, each of
// many runs (one message per matrix row would be slower than its bytes), and
// executed any number of times. Later executions allocate nothing: request
// nodes are spliced between the lists of pull and client.
#pragma once

#include "config/base/byte_runs.hpp"
#include "config/base/error.hpp"
#include "config/base/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <vector>

namespace troupe::net {

/// Result of a pull; nullopt: all bytes have arrived.
using MemoryDone = std::function<void(std::optional<Failure>)>;

class MemoryPull;

/// One request of at most kMemoryChunkBytes and kMaxRequestRuns.
struct MemoryRequest {
  std::vector<ByteRuns> parts = {};
  std::uint64_t runs = 0;
  std::uint64_t size_bytes = 0;
  MemoryPull* pull = nullptr;
  std::uint64_t number = 0; ///< unique on its connection
};

/// Cuts the runs into requests, at least one, in order.
std::list<MemoryRequest> cut_requests(std::span<const ByteRuns> parts);

class MemoryPull {
public:
  /// Prepares a pull from memory `id` of worker `from`.
  MemoryPull(WorkerId from, std::uint64_t id, std::span<const ByteRuns> parts);
  MemoryPull(const MemoryPull&) = delete; // requests point to it

  WorkerId from() const {
    return from_;
  }
  std::uint64_t id() const {
    return id_;
  }
  std::uint64_t size_bytes() const {
    return size_bytes_;
  }
  /// Returns the destination of the running pull.
  std::byte* into() const {
    return into_;
  }
  Incarnation incarnation() const {
    return incarnation_;
  }
  const std::list<MemoryRequest>& requests() const {
    return requests_;
  }

  using Counts = std::function<void(bool failed)>;
  /// Begins a pull: `done` is called after the last request has returned,
  /// because until then `into` may be written to; `counts` is called before it.
  void begin(std::byte* into, Counts counts, MemoryDone done);
  /// Appends its requests to `to`, marked with this incarnation.
  void send(std::list<MemoryRequest>& to, Incarnation incarnation);
  /// Takes back `request`, an element of `list`, which has ended.
  void came_back(std::list<MemoryRequest>& list,
                 std::list<MemoryRequest>::iterator request,
                 const Failure* failure);
  /// Ends all of it.
  void end(std::optional<Failure> failure);

private:
  WorkerId from_;
  std::uint64_t id_;
  std::list<MemoryRequest> requests_; ///< requests that are not in flight
  std::size_t num_requests_;
  std::uint64_t size_bytes_ = 0;
  std::byte* into_ = nullptr;
  Incarnation incarnation_;
  std::optional<Failure> failure_;
  Counts counts_;
  MemoryDone done_;
};

} // namespace troupe::net
