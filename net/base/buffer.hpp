// Shared bytes, 64-byte aligned (I8: the same vector code path everywhere).
// Copies of a Buffer share the memory; the last one frees it. Constness is
// shallow, as with a shared_ptr: the producer writes a buffer before handing it
// over, afterwards it is read-only (I6).
#pragma once

#include "config/base/defaults.hpp"

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
  /// Returns the bytes as elements of T; a remainder smaller than T is left
  /// out.
  template <class T>
  std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_), size_bytes_ / sizeof(T)};
  }
  /// Returns a range that shares the memory. Throws InvariantError if it is out
  /// of bounds.
  Buffer slice(std::size_t offset_bytes, std::size_t size_bytes) const;
  /// Returns the object that keeps the memory alive.
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

/// Returns uninitialized memory. Throws std::bad_alloc.
Buffer make_buffer(std::size_t size_bytes);
/// Wraps foreign memory, which `owner` (a tensor, a mapping) keeps alive.
Buffer wrap_buffer(void* data, std::size_t size_bytes,
                   std::shared_ptr<void> owner);

} // namespace troupe::net
