// Pages of the host that a device copies to and from by itself: page-locked
// while the object exists, where a device has copies of its own and its driver
// does not refuse.
#pragma once

#include "net/base/block_memory.hpp"
#include "net/base/copy_stream.hpp"

#include <cstddef>
#include <span>

namespace troupe::net {

class PageLock {
public:
  PageLock() = default;
  /// Locks nothing if the device has no copies of its own.
  PageLock(const BlockMemory& device, std::span<std::byte> bytes);
  ~PageLock();
  PageLock(PageLock&& other) noexcept;
  PageLock& operator=(PageLock&& other) noexcept;

private:
  const CopyStream* copies_ = nullptr; ///< null: nothing is locked
  void* data_ = nullptr;
};

} // namespace troupe::net
