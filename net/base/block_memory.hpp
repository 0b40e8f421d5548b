// Allocator for blocks of memory that do not come from the system: the memory
// of a device, whose addresses the host does not use. Plain functions, so that
// layers below tensors need not know the device. What the host reads or writes
// there goes through net/base/host_copy.hpp.
#pragma once

#include <cstddef>

namespace troupe::net {

struct BlockMemory {
  /// Allocates zeroed, page-aligned memory. Throws std::bad_alloc or, with what
  /// is free, a FailureError.
  void* (*take)(std::size_t size_bytes);
  /// Frees the block after work that uses it has finished.
  void (*give)(void* data);
  /// Copies to host memory after all kernels so far.
  void (*read)(const void* from, void* to, std::size_t size_bytes);
  /// Copies from host memory, ordered between kernels before and after; the
  /// host's memory may change after the call.
  void (*write)(const void* from, void* to, std::size_t size_bytes);
  /// Copies between blocks of one device after all kernels so far; returns
  /// when it is done.
  void (*copy)(const void* from, void* to, std::size_t size_bytes);
  /// Returns whether the address is in a block of this memory.
  bool (*owns)(const void* data);
};

} // namespace troupe::net
