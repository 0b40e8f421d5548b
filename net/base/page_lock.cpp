#include "net/base/page_lock.hpp"

#include <utility>

namespace troupe::net {

PageLock::PageLock(const BlockMemory& device, std::span<std::byte> bytes)
  : data_(bytes.data()) {
  if (device.copies != nullptr
      && device.copies->lock(bytes.data(), bytes.size()))
    copies_ = device.copies;
}

PageLock::~PageLock() {
  if (copies_ != nullptr)
    copies_->unlock(data_);
}

PageLock::PageLock(PageLock&& other) noexcept
  : copies_(std::exchange(other.copies_, nullptr)),
    data_(std::exchange(other.data_, nullptr)) {}

PageLock& PageLock::operator=(PageLock&& other) noexcept {
  std::swap(copies_, other.copies_);
  std::swap(data_, other.data_);
  return *this;
}

} // namespace troupe::net
