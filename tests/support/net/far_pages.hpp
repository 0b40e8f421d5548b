// Memory of a pretended device for tests below tensors: its pages are mapped
// twice, and only the mapping that is not given out can be read and written. A
// host that touches an address of the device faults. Other processes of the
// host can map it as well.
#pragma once

#include "net/base/block_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// One region for the whole process, which hands out pages in order, and those
/// of others that it maps. Threads may take pages at once.
class FarPages {
public:
  static const net::BlockMemory& memory() {
    static constexpr net::PeerBlocks peers{
      [](const void* data) { return instance().share(data); },
      [](const net::DeviceHandle& place) { return instance().map(place); },
      [](const void*, const net::DeviceHandle&) {}};
    static constexpr net::BlockMemory pages{
      [](std::size_t size_bytes) { return instance().take(size_bytes); },
      [](void*) {},
      [](const void* from, void* to, std::size_t size_bytes) {
        std::memcpy(to, instance().near(from), size_bytes);
      },
      [](const void* from, void* to, std::size_t size_bytes) {
        std::memcpy(instance().near(to), from, size_bytes);
      },
      [](const void* from, void* to, std::span<const ByteRuns> runs) {
        for (const ByteRuns& part : runs)
          copy_runs(part, instance().near(from), instance().near(to));
      },
      [](const void* data) { return instance().region_of(data) != nullptr; },
      &peers};
    return pages;
  }

private:
  static constexpr std::size_t region_bytes = std::size_t{16} << 20;
  static constexpr std::size_t page_bytes = 4096;

  struct Region {
    std::byte* far = nullptr;
    std::byte* near = nullptr;
  };
  /// Content of a handle.
  struct Place {
    int process = 0;
    int file = -1;
  };

  static FarPages& instance() {
    static FarPages pages;
    return pages;
  }

  FarPages() : file_(::memfd_create("far_pages", 0)) {
    if (file_ < 0 || ::ftruncate(file_, region_bytes) != 0)
      throw std::bad_alloc();
    regions_.push_back(mapped(file_));
  }
  static Region mapped(int file) {
    Region region;
    for (auto [rights, place] :
         {std::pair{PROT_NONE, &region.far},
          std::pair{PROT_READ | PROT_WRITE, &region.near}}) {
      void* data = ::mmap(nullptr, region_bytes, rights, MAP_SHARED, file, 0);
      if (data == MAP_FAILED)
        throw std::bad_alloc();
      *place = static_cast<std::byte*>(data);
    }
    return region;
  }

  void* take(std::size_t size_bytes) {
    const std::size_t pages = (size_bytes + page_bytes - 1) / page_bytes;
    const std::size_t first = used_.fetch_add(pages * page_bytes);
    if (first + pages * page_bytes > region_bytes)
      throw std::bad_alloc();
    return regions_.front().far + first;
  }
  std::optional<net::DeviceHandle> share(const void* data) const {
    const Place place{::getpid(), file_};
    net::DeviceHandle handle;
    std::memcpy(handle.handle.data(), &place, sizeof place);
    handle.offset = static_cast<std::uint64_t>(
      static_cast<const std::byte*>(data) - regions_.front().far);
    return handle;
  }
  const void* map(const net::DeviceHandle& handle) {
    Place place;
    std::memcpy(&place, handle.handle.data(), sizeof place);
    const auto path = "/proc/" + std::to_string(place.process) + "/fd/"
                      + std::to_string(place.file);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
      return nullptr;
    regions_.push_back(mapped(file));
    ::close(file);
    return regions_.back().far + handle.offset;
  }

  const Region* region_of(const void* data) const {
    const auto* at = static_cast<const std::byte*>(data);
    for (const Region& region : regions_)
      if (at >= region.far && at < region.far + region_bytes)
        return &region;
    return nullptr;
  }
  /// Returns where the host reaches an address: its own ones as they are.
  std::byte* near(const void* data) const {
    auto* at = static_cast<std::byte*>(const_cast<void*>(data));
    const Region* region = region_of(data);
    return region == nullptr ? at : region->near + (at - region->far);
  }

  int file_;
  std::vector<Region> regions_; ///< its own is the first
  std::atomic<std::size_t> used_ = 0;
};

} // namespace troupe::testing
