// Allocator for blocks of memory that do not come from the system: the memory
// of a device, whose addresses the host does not use. Plain functions, so that
// layers below tensors need not know the device. What the host reads or writes
// there goes through net/base/host_copy.hpp.
#pragma once

#include "config/base/byte_runs.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::net {

/// Location of a block of a device for other processes of the host: a handle of
/// the driver. Plain bytes, so that peers can pull it.
struct DeviceHandle {
  std::array<std::byte, 64> handle{};
  std::uint64_t offset = 0;             ///< of the block in what it opens
  std::array<std::int32_t, 4> device{}; ///< identity, of the host too
};

/// Blocks of a device that other processes of the host read in place.
struct PeerBlocks {
  /// Returns the location of a block; nullopt if the driver refuses.
  std::optional<DeviceHandle> (*share)(const void* data);
  /// Maps another process's block; null if that is impossible: another host, or
  /// a device that this process does not see.
  const void* (*map)(const DeviceHandle& place);
  void (*unmap)(const void* data, const DeviceHandle& place);
};

struct CopyStream;

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
  /// Copies runs between blocks, which may be on several devices of the host,
  /// and host memory, after all kernels so far of the target's device (the
  /// source's, if the target is the host's); returns when it is done.
  void (*copy)(const void* from, void* to, std::span<const ByteRuns> runs);
  /// Returns whether the address is in a block of this memory.
  bool (*owns)(const void* data);
  const PeerBlocks* peers = nullptr;  ///< null: nothing is shared
  const CopyStream* copies = nullptr; ///< null: whoever copies waits
};

/// Bytes of a block.
struct BlockBytes {
  std::span<const std::byte> bytes;
  const BlockMemory* memory = nullptr; ///< null: the host's
};

} // namespace troupe::net
