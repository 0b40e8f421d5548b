#include "far_memory.hpp"

#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

namespace troupe::testing {

namespace {

constexpr std::size_t far_page_bytes = 4096;
constexpr std::size_t far_arena_bytes = std::size_t{64} << 30;

std::size_t far_pages(std::size_t size_bytes) {
  const std::size_t size = std::max<std::size_t>(size_bytes, 1);
  return (size + far_page_bytes - 1) / far_page_bytes * far_page_bytes;
}

// For the handler, which may look at nothing that is locked.
const std::byte* far_begin = nullptr;

void far_say(const char* text) {
  [[maybe_unused]] const auto written
    = ::write(STDERR_FILENO, text, std::strlen(text));
}

/// Names a touch of the arena, then lets the signal end the process.
void far_touched(int signal, siginfo_t* info, void* /*context*/) {
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  if (at >= far_begin && at < far_begin + far_arena_bytes) {
    char text[128];
    std::snprintf(text, sizeof text,
                  "the host touched device memory, byte %zu of its arena:\n",
                  static_cast<std::size_t>(at - far_begin));
    far_say(text);
    void* frames[48];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, 48), STDERR_FILENO);
  }
  std::signal(signal, SIG_DFL);
}

} // namespace

FarMemory::FarMemory()
  : arena_(static_cast<std::byte*>(
    ::mmap(nullptr, far_arena_bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
  if (arena_ == MAP_FAILED)
    throw std::bad_alloc();
  far_begin = arena_;
  struct sigaction action {};
  action.sa_sigaction = far_touched;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}

void FarMemory::protect(int rights) const {
  if (end_ > 0 && ::mprotect(arena_, end_, rights) != 0)
    throw std::runtime_error("pages of the far memory kept their rights");
}

void* FarMemory::take(std::size_t size_bytes) {
  const std::size_t size = far_pages(size_bytes);
  const std::lock_guard lock(mutex_);
  std::size_t offset = end_;
  if (const auto found = free_.find(size); found != free_.end()) {
    offset = found->second;
    free_.erase(found);
  } else if (end_ + size > far_arena_bytes) {
    throw std::bad_alloc();
  } else {
    end_ += size;
    if (reached_ > 0)
      protect(PROT_READ | PROT_WRITE);
  }
  sizes_[offset] = size;
  return arena_ + offset;
}

void FarMemory::give(void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = sizes_.find(
    static_cast<std::size_t>(static_cast<std::byte*>(data) - arena_));
  if (found == sizes_.end())
    throw std::logic_error("a block of far memory is freed twice");
  ::madvise(data, found->second, MADV_DONTNEED);
  free_.emplace(found->second, found->first);
  sizes_.erase(found);
}

bool FarMemory::owns(const void* data) const {
  const auto* at = static_cast<const std::byte*>(data);
  return at >= arena_ && at < arena_ + far_arena_bytes;
}

FarMemory::Reach::Reach(FarMemory& memory) : memory_(memory) {
  const std::lock_guard lock(memory_.mutex_);
  if (memory_.reached_++ == 0)
    memory_.protect(PROT_READ | PROT_WRITE);
}

FarMemory::Reach::~Reach() {
  const std::lock_guard lock(memory_.mutex_);
  if (--memory_.reached_ == 0)
    memory_.protect(PROT_NONE);
}

} // namespace troupe::testing
