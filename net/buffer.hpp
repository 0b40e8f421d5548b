// Shared bytes, 64-byte aligned (I8: the same vector code path everywhere).
// Copies of a Buffer share the memory; the last one frees it. Const-ness is
// shallow, as with a shared_ptr: whoever produced a buffer writes it before it
// is handed over, afterwards it is read-only (I6).
#pragma once

#include "config/defaults.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace troupe::net {

class Buffer {
public:
  Buffer() = default;
  Buffer(std::shared_ptr<void> owner, std::byte* data, std::size_t size_bytes)
    : owner_(std::move(owner)),
      data_(data),
      size_bytes_(size_bytes) {}

  std::byte* data() const noexcept {
    return data_;
  }
  std::size_t size_bytes() const noexcept {
    return size_bytes_;
  }
  bool empty() const noexcept {
    return size_bytes_ == 0;
  }
  std::span<std::byte> bytes() const noexcept {
    return {data_, size_bytes_};
  }
  /// The bytes as elements of T; a rest smaller than T is left out.
  template <class T>
  std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_), size_bytes_ / sizeof(T)};
  }
  /// Shares the memory; throws InvariantError when the range leaves it.
  Buffer slice(std::size_t offset_bytes, std::size_t size_bytes) const;
  /// What keeps the memory alive.
  const std::shared_ptr<void>& owner() const noexcept {
    return owner_;
  }

private:
  std::shared_ptr<void> owner_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

inline constexpr std::size_t kBufferAlignment
  = defaults::buffer_alignment_bytes;

/// Uninitialised memory. Throws std::bad_alloc.
Buffer make_buffer(std::size_t size_bytes);
/// Memory of somebody else's; `owner` (a tensor, a mapping) keeps it alive.
Buffer wrap_buffer(void* data, std::size_t size_bytes,
                   std::shared_ptr<void> owner);

} // namespace troupe::net
