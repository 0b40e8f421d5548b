#include "memory.hpp"

#include "queue.hpp"
#include "state.hpp"
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace troupe::standin {

namespace {

constexpr std::size_t page_bytes = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return std::max(page_bytes,
                  (bytes + page_bytes - 1) / page_bytes * page_bytes);
}

template <class Blocks>
auto block_at(Blocks& blocks, const void* data) {
  auto found = blocks.upper_bound(static_cast<const char*>(data));
  if (found == blocks.begin())
    return blocks.end();
  --found;
  const auto offset = static_cast<const char*>(data) - found->first;
  const bool inside = static_cast<std::size_t>(offset)
                      < std::max<std::size_t>(found->second.size_bytes, 1);
  return inside ? found : blocks.end();
}

const char* word_of(Kind kind) {
  switch (kind) {
  case Kind::device:
    return "memory";
  case Kind::managed:
    return "managed memory";
  case Kind::pinned:
  case Kind::locked:
    return "pinned memory";
  case Kind::opened:
    return "another process's memory";
  }
  return "";
}

std::string about(const Block& block) {
  return std::string("a block of ") + std::to_string(block.size_bytes)
         + " bytes of " + word_of(block.kind) + " of GPU "
         + std::to_string(block.device);
}

struct sigaction before_segv;

/// Names the block that was touched, then leaves the rest to who was there.
void say_touched(int signal, siginfo_t* info, void* context) {
  const std::string what = memory().describe(info->si_addr);
  if (!what.empty())
    std::fprintf(stderr, "standin: the host touches %s\n", what.c_str());
  ::sigaction(signal, &before_segv, nullptr);
  if ((before_segv.sa_flags & SA_SIGINFO) != 0)
    before_segv.sa_sigaction(signal, info, context);
}

} // namespace

Memory& memory() {
  static Memory& only = *[] {
    struct sigaction mine {};
    mine.sa_sigaction = say_touched;
    mine.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &mine, &before_segv);
    return new Memory;
  }();
  return only;
}

void* Memory::take(std::size_t size_bytes, Kind kind, int device) {
  const Lock lock(mutex());
  const std::size_t limit = state().device_bytes;
  const std::size_t all
    = (kind == Kind::managed ? 0 : taken(device)) + size_bytes;
  if (kind != Kind::pinned && all > (kind == Kind::managed ? 2 : 1) * limit)
    return nullptr;
  Block block{size_bytes, kind, device};
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (kind == Kind::device) {
    block.file = ::memfd_create("troupe_standin", MFD_CLOEXEC);
    if (block.file < 0
        || ::ftruncate(block.file, static_cast<off_t>(whole_pages(size_bytes)))
             != 0)
      return nullptr;
    flags = MAP_SHARED | MAP_NORESERVE;
  }
  const bool is_open = kind != Kind::device || accessing_ > 0;
  void* data = ::mmap(nullptr, whole_pages(size_bytes),
                      is_open ? PROT_READ | PROT_WRITE : PROT_NONE, flags,
                      block.file, 0);
  if (data == MAP_FAILED)
    return nullptr;
  blocks_[static_cast<const char*>(data)] = block;
  return data;
}

void* Memory::open(int file, std::size_t size_bytes, int device) {
  const Lock lock(mutex());
  void* data = ::mmap(nullptr, whole_pages(size_bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED, file, 0);
  if (data == MAP_FAILED)
    return nullptr;
  blocks_[static_cast<const char*>(data)]
    = {size_bytes, Kind::opened, device, file};
  return data;
}

// The address stays mapped without access, so that nobody gets it again.
bool Memory::give(void* data) {
  const Lock lock(mutex());
  const auto found = blocks_.find(static_cast<const char*>(data));
  if (found == blocks_.end())
    return false;
  ::mmap(data, whole_pages(found->second.size_bytes), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (found->second.file >= 0)
    ::close(found->second.file);
  found->second.file = -1;
  freed_.insert(*found);
  blocks_.erase(found);
  return true;
}

bool Memory::lock(void* data, std::size_t size_bytes, int device) {
  const Lock lock(mutex());
  const auto* begin = static_cast<const char*>(data);
  const auto after = blocks_.lower_bound(begin);
  if (find(begin) != nullptr
      || (after != blocks_.end() && after->first < begin + size_bytes))
    return false;
  blocks_[begin] = {size_bytes, Kind::locked, device};
  return true;
}

bool Memory::unlock(void* data) {
  const Lock lock(mutex());
  const auto found = blocks_.find(static_cast<const char*>(data));
  if (found == blocks_.end() || found->second.kind != Kind::locked)
    return false;
  blocks_.erase(found);
  return true;
}

std::size_t Memory::taken(int device) const {
  const Lock lock(mutex());
  std::size_t sum = 0;
  for (const auto& [data, block] : blocks_)
    if (block.device == device && !block.is_on_host
        && (block.kind == Kind::device || block.kind == Kind::managed))
      sum += block.size_bytes;
  return sum;
}

const Block* Memory::find(const void* data) const {
  const Lock lock(mutex());
  const auto found = block_at(blocks_, data);
  return found == blocks_.end() ? nullptr : &found->second;
}

const void* Memory::start_of(const void* data) const {
  const Lock lock(mutex());
  const auto found = block_at(blocks_, data);
  return found == blocks_.end() ? nullptr : found->first;
}

void Memory::move_pages(const void* data, bool to_host) {
  const Lock lock(mutex());
  const auto found = block_at(blocks_, data);
  if (found != blocks_.end())
    found->second.is_on_host = to_host;
}

// Memory that is nobody's block is the host's own, which a copy may use.
bool Memory::may_access(const Work& work) {
  for (const Range& range : work.ranges) {
    if (range.size_bytes == 0)
      continue;
    const auto freed = block_at(freed_, range.data);
    if (freed != freed_.end()) {
      fault(cudaErrorIllegalAddress, work.name + " uses " + about(freed->second)
                                       + " that has been freed");
      return false;
    }
    const auto found = block_at(blocks_, range.data);
    if (found == blocks_.end())
      continue;
    const char* last
      = static_cast<const char*>(range.data) + range.size_bytes - 1;
    if (block_at(blocks_, last) != found) {
      fault(cudaErrorIllegalAddress,
            work.name + " goes beyond " + about(found->second));
      return false;
    }
  }
  return true;
}

std::string Memory::describe(const void* data) const {
  const auto freed = block_at(freed_, data);
  if (freed != freed_.end())
    return about(freed->second) + " that has been freed";
  const auto found = block_at(blocks_, data);
  return found == blocks_.end() ? "" : about(found->second);
}

void Memory::protect(bool is_open) const {
  for (const auto& [data, block] : blocks_)
    if (block.kind == Kind::device)
      ::mprotect(const_cast<char*>(data), whole_pages(block.size_bytes),
                 is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void Memory::begin_access() {
  if (accessing_++ == 0)
    protect(true);
}

void Memory::end_access() {
  if (--accessing_ == 0)
    protect(false);
}

} // namespace troupe::standin
