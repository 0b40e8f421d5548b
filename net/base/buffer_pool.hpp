// Pool of blocks for received data: fresh pages cost as much as the transfer
// itself (a 64 MiB receive into new memory halves the rate). Blocks return with
// the last copy of their Buffer; after the pool is gone they are freed.
// Thread-safe.
#pragma once

#include "net/base/buffer.hpp"

#include <cstdint>
#include <memory>

namespace troupe::net {

class BufferPool {
public:
  /// Creates an empty pool that keeps at most `max_idle_bytes` of idle blocks.
  explicit BufferPool(std::uint64_t max_idle_bytes);

  /// Returns a Buffer of exactly `size_bytes`, in a block rounded up to its
  /// size class (at most a quarter more).
  Buffer take(std::size_t size_bytes);
  std::uint64_t idle_bytes() const;

private:
  struct State;
  std::shared_ptr<State> state_;
};

} // namespace troupe::net
