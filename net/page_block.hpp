// Whole pages of memory whose content can be given back to the system while
// their address stays: planes of weights and moments. A shared block lies in a
// memory file that processes of the same user on this host may map to read it.
#pragma once

#include "net/block_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::net {

/// Where another process finds a shared block: /proc/PID/fd/DESCRIPTOR, if that
/// is the file of this name. Plain bytes, so that peers can pull it.
struct MemoryPlace {
  std::uint64_t process = 0;
  std::uint64_t descriptor = 0;
  std::uint64_t size_bytes = 0;
  std::array<char, 40> name = {}; ///< random, ends with a zero
};

enum class PageSharing : std::uint8_t { none, by_descriptor };

class PageBlock {
public:
  PageBlock() = default;
  /// Zeros. A block that cannot be shared (no memory files here) is not; one
  /// that is not shared asks for large pages, which come and go many times
  /// faster. Throws std::bad_alloc.
  PageBlock(std::size_t size_bytes, PageSharing sharing);
  /// In a device's memory; never shared.
  PageBlock(std::size_t size_bytes, const BlockMemory& memory);
  ~PageBlock();
  PageBlock(PageBlock&& other) noexcept;
  PageBlock& operator=(PageBlock&& other) noexcept;

  /// Aligned to a page; null if the block is empty.
  std::byte* data() const {
    return data_;
  }
  std::size_t size_bytes() const {
    return size_bytes_;
  }
  /// The pages go back to the system, and what is read next is zero; a device's
  /// go to the host.
  void release_pages();
  /// Of the pages that are in memory now, as the system counts them.
  std::uint64_t resident_bytes() const;
  /// Empty if the block is not shared.
  std::optional<MemoryPlace> place() const;

private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  int descriptor_ = -1;
  const BlockMemory* memory_ = nullptr; ///< null: the system's
  std::array<char, 40> name_ = {};
};

/// Another process's shared block, mapped to be read.
class MappedPlace {
public:
  /// Empty where it cannot be: another host or user, or the process is gone.
  static std::optional<MappedPlace> open(const MemoryPlace& place);
  ~MappedPlace();
  MappedPlace(MappedPlace&& other) noexcept;
  MappedPlace& operator=(MappedPlace&&) = delete;

  std::span<const std::byte> bytes() const {
    return {data_, size_bytes_};
  }

private:
  MappedPlace(const std::byte* data, std::size_t size_bytes)
    : data_(data),
      size_bytes_(size_bytes) {}

  const std::byte* data_;
  std::size_t size_bytes_;
};

} // namespace troupe::net
