// Numbers of a device as the host reads and writes them: a block that the host
// can address is used in place, any other is copied. So code that works on the
// host's memory (files, moves, collectives of hosts, losses) is the same for
// both, and copies nothing where all memory is the host's.
#pragma once

#include "net/base/block_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace troupe::net {

/// Host memory in the alignment that kernels give their blocks.
struct FreeHostBytes {
  void operator()(std::byte* data) const;
};
using HostBytes = std::unique_ptr<std::byte, FreeHostBytes>;

/// Bytes of a device for the host to read. The device's kernels have run when
/// it exists; without a `memory` the caller has waited for them.
class HostRead {
public:
  /// A null `memory` means the host's.
  HostRead(const BlockMemory* memory, const void* data, std::size_t size_bytes);

  std::span<const std::byte> bytes() const {
    return {data_, size_bytes_};
  }
  const float* floats() const {
    return reinterpret_cast<const float*>(data_);
  }

private:
  HostBytes copy_;
  const std::byte* data_;
  std::size_t size_bytes_;
};

enum class OldContent : std::uint8_t {
  needed,
  ignored
}; ///< a copy of ignored
   ///< content is zero

/// Bytes of a device for the host to change; `put_back` ends it.
class HostWrite {
public:
  HostWrite(const BlockMemory* memory, void* data, std::size_t size_bytes,
            OldContent old);

  std::span<std::byte> bytes() const {
    return {data_, size_bytes_};
  }
  float* floats() const {
    return reinterpret_cast<float*>(data_);
  }
  /// Writes a copy to the device. May be called again after more changes.
  void put_back() const;

private:
  const BlockMemory* memory_;
  void* device_;
  HostBytes copy_;
  std::byte* data_;
  std::size_t size_bytes_;
};

} // namespace troupe::net
