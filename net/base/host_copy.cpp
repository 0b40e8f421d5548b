#include "net/base/host_copy.hpp"

#include <cstring>
#include <new>

namespace troupe::net {

namespace {

constexpr std::align_val_t host_copy_alignment{64};

HostBytes take_host_copy(std::size_t size_bytes) {
  return HostBytes(
    static_cast<std::byte*>(::operator new(size_bytes, host_copy_alignment)));
}

} // namespace

void FreeHostBytes::operator()(std::byte* data) const {
  ::operator delete(data, host_copy_alignment);
}

HostRead::HostRead(const BlockMemory* memory, const void* data,
                   std::size_t size_bytes)
  : data_(static_cast<const std::byte*>(data)),
    size_bytes_(size_bytes) {
  if (memory == nullptr || size_bytes == 0)
    return;
  copy_ = take_host_copy(size_bytes);
  memory->read(data, copy_.get(), size_bytes);
  data_ = copy_.get();
}

HostWrite::HostWrite(const BlockMemory* memory, void* data,
                     std::size_t size_bytes, OldContent old)
  : memory_(memory),
    device_(data),
    data_(static_cast<std::byte*>(data)),
    size_bytes_(size_bytes) {
  if (memory == nullptr || size_bytes == 0)
    return;
  copy_ = take_host_copy(size_bytes);
  data_ = copy_.get();
  if (old == OldContent::needed)
    memory->read(data, data_, size_bytes);
  else
    std::memset(data_, 0, size_bytes);
}

void HostWrite::put_back() const {
  if (copy_)
    memory_->write(data_, device_, size_bytes_);
}

} // namespace troupe::net
