// A pull of memory, compiled: cut once into requests of bounded size, each of
// many runs (a message a row of a matrix would be slower than its bytes), and
// run as often as wanted. Running it again allocates nothing: its requests
// wander through the lists of who sends them and back.
#pragma once

#include "config/byte_runs.hpp"
#include "config/error.hpp"
#include "config/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <vector>

namespace troupe::net {

/// Empty: all bytes are there.
using MemoryDone = std::function<void(std::optional<Failure>)>;

class MemoryPull;

/// At most kMemoryChunkBytes and kMaxRequestRuns.
struct MemoryRequest {
  std::vector<ByteRuns> parts = {};
  std::uint64_t runs = 0;
  std::uint64_t size_bytes = 0;
  MemoryPull* pull = nullptr;
  std::uint64_t number = 0; ///< on its connection
};

/// At least one, in order.
std::list<MemoryRequest> cut_requests(std::span<const ByteRuns> parts);

class MemoryPull {
public:
  /// Of memory `id` of worker `from`.
  MemoryPull(WorkerId from, std::uint64_t id, std::span<const ByteRuns> parts);
  MemoryPull(const MemoryPull&) = delete; // its requests point to it

  WorkerId from() const {
    return from_;
  }
  std::uint64_t id() const {
    return id_;
  }
  std::uint64_t size_bytes() const {
    return size_bytes_;
  }
  /// Where what runs now writes to.
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
  /// `done` is called after the last request came back, because until then
  /// somebody may write to `into`; `counts` before it.
  void begin(std::byte* into, Counts counts, MemoryDone done);
  /// Appends its requests to `to`; they are of this incarnation.
  void send(std::list<MemoryRequest>& to, Incarnation incarnation);
  /// `request`, an element of `list`, ended.
  void came_back(std::list<MemoryRequest>& list,
                 std::list<MemoryRequest>::iterator request,
                 const Failure* failure);
  /// All of it ended.
  void end(std::optional<Failure> failure);

private:
  WorkerId from_;
  std::uint64_t id_;
  std::list<MemoryRequest> requests_; ///< those that are not on their way
  std::size_t num_requests_;
  std::uint64_t size_bytes_ = 0;
  std::byte* into_ = nullptr;
  Incarnation incarnation_;
  std::optional<Failure> failure_;
  Counts counts_;
  MemoryDone done_;
};

} // namespace troupe::net
