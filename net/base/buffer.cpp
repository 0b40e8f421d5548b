#include "net/base/buffer.hpp"

#include "config/base/error.hpp"

#include <cstdlib>
#include <new>

namespace troupe::net {

Buffer Buffer::slice(std::size_t offset_bytes, std::size_t size_bytes) const {
  TROUPE_CHECK(offset_bytes <= size_bytes_
                 && size_bytes <= size_bytes_ - offset_bytes,
               "slice of " + std::to_string(size_bytes) + " bytes at "
                 + std::to_string(offset_bytes) + " leaves a buffer of "
                 + std::to_string(size_bytes_));
  return {owner_, data_ + offset_bytes, size_bytes};
}

Buffer make_buffer(std::size_t size_bytes) {
  if (size_bytes == 0)
    return {};
  const std::size_t rounded
    = (size_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  void* data = rounded < size_bytes
                 ? nullptr
                 : std::aligned_alloc(kBufferAlignment, rounded);
  if (data == nullptr)
    throw std::bad_alloc();
  std::shared_ptr<void> owner(data, std::free);
  return {std::move(owner), static_cast<std::byte*>(data), size_bytes};
}

Buffer wrap_buffer(void* data, std::size_t size_bytes,
                   std::shared_ptr<void> owner) {
  return {std::move(owner), static_cast<std::byte*>(data), size_bytes};
}

} // namespace troupe::net
