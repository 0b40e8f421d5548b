#include "net/base/memory_count.hpp"

namespace troupe::net {

namespace {

MemoryCount*& thread_count() {
  static thread_local MemoryCount* count = nullptr;
  return count;
}

} // namespace

MemoryCount* MemoryCount::of_this_thread() {
  return thread_count();
}

void MemoryCount::count_this_thread() {
  thread_count() = this;
}

void MemoryCount::begin_peak() {
  peak_.store(now_bytes(), std::memory_order_relaxed);
}

void MemoryCount::change(std::uint64_t from_bytes, std::uint64_t to_bytes) {
  if (from_bytes == to_bytes)
    return;
  const auto now
    = now_.fetch_add(to_bytes - from_bytes, std::memory_order_relaxed)
      + (to_bytes - from_bytes);
  auto peak = peak_bytes();
  while (now > peak
         && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed))
    ;
}

} // namespace troupe::net
