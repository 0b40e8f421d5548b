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

/// Location of a shared block for another process: /proc/PID/fd/DESCRIPTOR, if
/// that is the file of this name. Plain bytes, so that peers can pull it.
struct MemoryHandle {
  std::uint64_t process = 0;
  std::uint64_t descriptor = 0;
  std::uint64_t size_bytes = 0;
  std::array<char, 40> name = {}; ///< random, zero-terminated
};

enum class PageSharing : std::uint8_t { none, by_descriptor };

class PageBlock {
public:
  PageBlock() = default;
  /// Allocates zeroed pages. If memory files are unavailable, the block is not
  /// shared; a block that is not shared requests huge pages, which are mapped
  /// and released many times faster. Throws std::bad_alloc.
  PageBlock(std::size_t size_bytes, PageSharing sharing);
  /// Allocates device memory, which is never shared.
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
  /// Maps a block; nullopt if that is impossible: another host or user, or the
  /// process is gone.
  static std::optional<MappedHandle> open(const MemoryHandle& place);
  ~MappedHandle();
  MappedHandle(MappedHandle&& other) noexcept;
  MappedHandle& operator=(MappedHandle&&) = delete;

  std::span<const std::byte> bytes() const {
    return {data_, size_bytes_};
  }

private:
  MappedHandle(const std::byte* data, std::size_t size_bytes)
    : data_(data),
      size_bytes_(size_bytes) {}

  const std::byte* data_;
  std::size_t size_bytes_;
};

} // namespace troupe::net
