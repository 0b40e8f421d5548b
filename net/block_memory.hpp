// Where blocks of memory come from if not from the system: memory of a device
// that the host may touch too. Plain functions, so that the layers below
// tensors need not know the device.
#pragma once

#include <cstddef>

namespace troupe::net {

struct BlockMemory {
  /// Zeros, aligned to a page. Throws std::bad_alloc.
  void* (*take)(std::size_t size_bytes);
  /// Waits for work that uses it.
  void (*give)(void* data);
  /// Off the device; address and content stay.
  void (*evict)(void* data, std::size_t size_bytes);
};

} // namespace troupe::net
