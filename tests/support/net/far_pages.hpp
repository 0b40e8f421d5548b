// Memory of a pretended device for tests below tensors: its pages are mapped
// twice, and only the mapping that is not given out can be read and written. A
// host that touches an address of the device faults.
#pragma once

#include "net/base/block_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <new>

namespace troupe::testing {

/// One region for the whole process, which hands out pages in order.
class FarPages {
public:
  static const net::BlockMemory& memory() {
    static constexpr net::BlockMemory pages{
      [](std::size_t size_bytes) { return instance().take(size_bytes); },
      [](void*) {},
      [](const void* from, void* to, std::size_t size_bytes) {
        std::memcpy(to, instance().near(from), size_bytes);
      },
      [](const void* from, void* to, std::size_t size_bytes) {
        std::memcpy(instance().near(to), from, size_bytes);
      },
      [](const void* from, void* to, std::size_t size_bytes) {
        std::memcpy(instance().near(to), instance().near(from), size_bytes);
      },
      [](const void* data) { return instance().has(data); }};
    return pages;
  }

private:
  static constexpr std::size_t region_bytes = std::size_t{16} << 20;
  static constexpr std::size_t page_bytes = 4096;

  static FarPages& instance() {
    static FarPages pages;
    return pages;
  }

  FarPages() {
    const int file = ::memfd_create("far_pages", 0);
    if (file < 0 || ::ftruncate(file, region_bytes) != 0)
      throw std::bad_alloc();
    far_ = map(file, PROT_NONE);
    near_ = map(file, PROT_READ | PROT_WRITE);
    ::close(file);
  }
  static std::byte* map(int file, int rights) {
    void* data = ::mmap(nullptr, region_bytes, rights, MAP_SHARED, file, 0);
    if (data == MAP_FAILED)
      throw std::bad_alloc();
    return static_cast<std::byte*>(data);
  }

  void* take(std::size_t size_bytes) {
    void* data = far_ + used_;
    used_ += (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
    if (used_ > region_bytes)
      throw std::bad_alloc();
    return data;
  }
  bool has(const void* data) const {
    const auto* at = static_cast<const std::byte*>(data);
    return at >= far_ && at < far_ + region_bytes;
  }
  std::byte* near(const void* data) const {
    return near_ + (static_cast<const std::byte*>(data) - far_);
  }

  std::byte* far_ = nullptr;
  std::byte* near_ = nullptr;
  std::size_t used_ = 0;
};

} // namespace troupe::testing
