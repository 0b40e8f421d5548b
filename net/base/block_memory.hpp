// Allocator for blocks of memory that do not come from the system: device
// memory that the host may also access. Plain functions, so that layers below
// tensors need not know the device.
#pragma once

#include <cstddef>

namespace troupe::net {

struct BlockMemory {
  /// Allocates zeroed, page-aligned memory. Throws std::bad_alloc or, with what
  /// is free, a FailureError.
  void* (*take)(std::size_t size_bytes);
  /// Frees the block after work that uses it has finished.
  void (*give)(void* data);
  /// Moves pages off the device; address and content stay.
  void (*evict)(void* data, std::size_t size_bytes);
};

} // namespace troupe::net
