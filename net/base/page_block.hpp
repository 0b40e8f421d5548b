// Whole pages of memory whose content can be returned to the system while their
// address stays: planes of weights and moments. A shared block is in a memory
// file that processes of the same user on this host may map for reading.
#pragma once

#include "net/base/block_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::net {

/// Location of a shared block for another process: in a device's memory, or in
/// /proc/PID/fd/DESCRIPTOR, if that is the file of this name. Plain bytes, so
/// that peers can pull it.
struct MemoryHandle {
  std::uint64_t process = 0;
  std::uint64_t descriptor = 0;
  std::uint64_t size_bytes = 0;
  std::array<char, 40> name = {};     ///< random, zero-terminated
  std::optional<DeviceHandle> device; ///< nullopt: it is the system's
};

enum class PageSharing : std::uint8_t { none, by_descriptor };

class PageBlock {
public:
  PageBlock() = default;
  /// Allocates zeroed pages. If memory files are unavailable, the block is not
  /// shared; a block that is not shared requests huge pages, which are mapped
  /// and released many times faster. Throws std::bad_alloc.
  PageBlock(std::size_t size_bytes, PageSharing sharing);
  /// Allocates device memory, which is shared if the device can.
  PageBlock(std::size_t size_bytes, const BlockMemory& memory);
  ~PageBlock();
  PageBlock(PageBlock&& other) noexcept;
  PageBlock& operator=(PageBlock&& other) noexcept;

  /// Returns the page-aligned memory; null if the block is empty.
  std::byte* data() const {
    return data_;
  }
  std::size_t size_bytes() const {
    return size_bytes_;
  }
  /// Returns the device's memory; null: it is the system's.
  const BlockMemory* memory() const {
    return memory_;
  }
  /// Returns the pages to the system, after which they read as zero. Not for
  /// blocks of a device: these are freed as a whole.
  void release_pages();
  /// Returns the bytes of resident pages, as the system counts them.
  std::uint64_t resident_bytes() const;
  /// Returns the location of a shared block; nullopt if it is not shared.
  std::optional<MemoryHandle> place() const;

private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  int descriptor_ = -1;
  const BlockMemory* memory_ = nullptr; ///< null: system memory
  std::array<char, 40> name_ = {};
};

/// Another process's shared block, mapped for reading.
class MappedHandle {
public:
  /// Maps a block of the system's memory, or of `device`'s; nullopt if that is
  /// impossible: another host or user, or the process is gone.
  static std::optional<MappedHandle> open(const MemoryHandle& place,
                                          const BlockMemory* device = nullptr);
  ~MappedHandle();
  MappedHandle(MappedHandle&& other) noexcept;
  MappedHandle& operator=(MappedHandle&&) = delete;

  BlockBytes block() const {
    return {{data_, size_bytes_}, device_};
  }

private:
  MappedHandle(const std::byte* data, const MemoryHandle& place,
               const BlockMemory* device)
    : data_(data),
      size_bytes_(place.size_bytes),
      device_(device),
      place_(place.device) {}

  const std::byte* data_;
  std::size_t size_bytes_;
  const BlockMemory* device_; ///< null: system memory
  std::optional<DeviceHandle> place_;
};

} // namespace troupe::net
