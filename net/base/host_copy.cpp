#include "net/base/host_copy.hpp"

#include "net/base/staged_copy.hpp"

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
  read_block(*memory, {data_, size_bytes}, copy_.get());
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
  if (old == OldContent::needed)
    read_block(*memory, {data_, size_bytes}, copy_.get());
  else
    std::memset(copy_.get(), 0, size_bytes);
  data_ = copy_.get();
}

void HostWrite::put_back() const {
  if (copy_)
    write_block(*memory_, data_,
                {static_cast<std::byte*>(device_), size_bytes_});
}

} // namespace troupe::net
