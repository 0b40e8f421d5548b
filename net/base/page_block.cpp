#include "net/base/page_block.hpp"

#include "config/base/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace troupe::net {

namespace {

/// Returns "troupe-" and 128 random bits: no other file has this name by
/// chance.
std::array<char, 40> page_block_name() {
  std::random_device random;
  const auto text = fmt::format("troupe-{:08x}{:08x}{:08x}{:08x}", random(),
                                random(), random(), random());
  std::array<char, 40> name = {};
  std::ranges::copy(text, name.begin());
  return name;
}

/// Returns a memory file of this size, or -1.
int page_block_file(const char* name, std::size_t size_bytes) {
  const int descriptor = ::memfd_create(name, MFD_CLOEXEC);
  if (descriptor >= 0
      && ::ftruncate(descriptor, static_cast<off_t>(size_bytes)) != 0) {
    ::close(descriptor);
    return -1;
  }
  return descriptor;
}

/// Returns true if the open file is the memory file of that name and size.
bool is_named(int descriptor, const MemoryHandle& place) {
  char link[128] = {};
  const auto path = fmt::format("/proc/self/fd/{}", descriptor);
  const auto length = ::readlink(path.c_str(), link, sizeof(link) - 1);
  const auto expected
    = fmt::format("/memfd:{} (deleted)", std::string(place.name.data()));
  struct stat found = {};
  return length > 0 && expected == link && ::fstat(descriptor, &found) == 0
         && static_cast<std::uint64_t>(found.st_size) == place.size_bytes;
}

} // namespace

PageBlock::PageBlock(std::size_t size_bytes, PageSharing sharing)
  : size_bytes_(size_bytes) {
  if (size_bytes == 0)
    return;
  if (sharing == PageSharing::by_descriptor) {
    name_ = page_block_name();
    descriptor_ = page_block_file(name_.data(), size_bytes);
  }
  const int flags = descriptor_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags,
                      descriptor_, 0);
  if (data == MAP_FAILED)
    throw std::bad_alloc();
  data_ = static_cast<std::byte*>(data);
  // a system without huge pages provides small ones: only slower
  if (descriptor_ < 0)
    ::madvise(data_, size_bytes_, MADV_HUGEPAGE);
}

PageBlock::PageBlock(std::size_t size_bytes, const BlockMemory& memory)
  : data_(static_cast<std::byte*>(memory.take(size_bytes))),
    size_bytes_(size_bytes),
    memory_(&memory) {}

PageBlock::~PageBlock() {
  if (data_ != nullptr && memory_ != nullptr)
    memory_->give(data_);
  else if (data_ != nullptr)
    ::munmap(data_, size_bytes_);
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

PageBlock::PageBlock(PageBlock&& other) noexcept
  : data_(std::exchange(other.data_, nullptr)),
    size_bytes_(std::exchange(other.size_bytes_, 0)),
    descriptor_(std::exchange(other.descriptor_, -1)),
    memory_(other.memory_),
    name_(other.name_) {}

void PageBlock::release_pages() {
  if (data_ == nullptr)
    return;
  TROUPE_CHECK(memory_ == nullptr, "pages of a device have no other address");
  const int advice = descriptor_ >= 0 ? MADV_REMOVE : MADV_DONTNEED;
  TROUPE_CHECK(::madvise(data_, size_bytes_, advice) == 0,
               "pages of a block could not be given back");
}

std::uint64_t PageBlock::resident_bytes() const {
  if (data_ == nullptr)
    return 0;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> in_memory((size_bytes_ + page - 1) / page);
  TROUPE_CHECK(::mincore(data_, size_bytes_, in_memory.data()) == 0,
               "the system does not say which pages are in memory");
  const auto count = std::ranges::count_if(
    in_memory, [](unsigned char flags) { return (flags & 1) != 0; });
  return static_cast<std::uint64_t>(count) * page;
}

std::optional<MemoryHandle> PageBlock::place() const {
  MemoryHandle place{.process = static_cast<std::uint64_t>(::getpid()),
                     .descriptor = 0,
                     .size_bytes = size_bytes_,
                     .name = name_,
                     .device = std::nullopt};
  if (descriptor_ >= 0) {
    place.descriptor = static_cast<std::uint64_t>(descriptor_);
    return place;
  }
  if (data_ == nullptr || memory_ == nullptr || memory_->peers == nullptr)
    return std::nullopt;
  place.device = memory_->peers->share(data_);
  return place.device ? std::optional(place) : std::nullopt;
}

std::optional<MappedHandle> MappedHandle::open(const MemoryHandle& place,
                                               const BlockMemory* device) {
  if (place.name.back() != '\0' || place.size_bytes == 0)
    return std::nullopt;
  if (place.device) {
    const void* data = device != nullptr && device->peers != nullptr
                         ? device->peers->map(*place.device)
                         : nullptr;
    if (data == nullptr)
      return std::nullopt;
    return MappedHandle{static_cast<const std::byte*>(data), place, device};
  }
  const auto path
    = fmt::format("/proc/{}/fd/{}", place.process, place.descriptor);
  // the number may be another container's, and the file a pipe, which blocks
  const int descriptor
    = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return std::nullopt;
  void* data = is_named(descriptor, place)
                 ? ::mmap(nullptr, place.size_bytes, PROT_READ, MAP_SHARED,
                          descriptor, 0)
                 : MAP_FAILED;
  ::close(descriptor);
  if (data == MAP_FAILED)
    return std::nullopt;
  return MappedHandle{static_cast<const std::byte*>(data), place, nullptr};
}

MappedHandle::~MappedHandle() {
  if (data_ != nullptr && device_ != nullptr)
    device_->peers->unmap(data_, *place_);
  else if (data_ != nullptr)
    ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

MappedHandle::MappedHandle(MappedHandle&& other) noexcept
  : data_(std::exchange(other.data_, nullptr)),
    size_bytes_(std::exchange(other.size_bytes_, 0)),
    device_(other.device_),
    place_(other.place_) {}

PageBlock& PageBlock::operator=(PageBlock&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(memory_, other.memory_);
  std::swap(name_, other.name_);
  return *this;
}

} // namespace troupe::net
