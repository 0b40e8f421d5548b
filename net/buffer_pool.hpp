// Received blocks for reuse: fresh pages cost as much as the transfer itself
// (a 64 MiB receive into new memory halves the rate). Blocks come back with the
// last copy of their Buffer, also after the pool is gone. Thread-safe.
#pragma once

#include "net/buffer.hpp"

#include <cstdint>
#include <memory>

namespace troupe::net {

class BufferPool {
public:
  /// Idle blocks above `max_idle_bytes` in sum are freed.
  explicit BufferPool(std::uint64_t max_idle_bytes);

  /// Memory of at least `size_bytes` rounded up to its class (at most a quarter
  /// more); the Buffer has exactly `size_bytes`.
  Buffer take(std::size_t size_bytes);
  std::uint64_t idle_bytes() const;

private:
  struct State;
  std::shared_ptr<State> state_;
};

} // namespace troupe::net
