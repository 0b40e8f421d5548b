// How much memory the tensors of one device take, counted by whoever allocates
// for it: now, and at most since the peak was begun. Devices of one process
// share its heap, so a device is known by its thread: what is made there
// charges the thread's count, and gives back to the same count wherever it
// dies. Host memory of a device's work (rows, copies that others read, scratch
// of kernels) is not in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace troupe::net {

/// Lock-free; outlives what is charged to it.
class MemoryCount {
public:
  std::uint64_t now_bytes() const {
    return now_.load(std::memory_order_relaxed);
  }
  /// Most bytes since `begin_peak`.
  std::uint64_t peak_bytes() const {
    return peak_.load(std::memory_order_relaxed);
  }
  /// From here on the peak is that of what comes.
  void begin_peak();

  /// The calling thread's, null: nobody counts.
  static MemoryCount* of_this_thread();
  /// What the calling thread makes from here on is this device's.
  void count_this_thread();

private:
  friend class MemoryCharge;
  void change(std::uint64_t from_bytes, std::uint64_t to_bytes);

  std::atomic<std::uint64_t> now_{0};
  std::atomic<std::uint64_t> peak_{0};
};

/// Bytes that something holds of a device's memory.
class MemoryCharge {
public:
  explicit MemoryCharge(MemoryCount* count = MemoryCount::of_this_thread())
    : count_(count) {}
  ~MemoryCharge() {
    set(0);
  }
  MemoryCharge(MemoryCharge&& other) noexcept
    : count_(other.count_),
      bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  void set(std::uint64_t bytes) {
    if (count_ != nullptr)
      count_->change(bytes_, bytes);
    bytes_ = bytes;
  }

private:
  MemoryCount* count_;
  std::uint64_t bytes_ = 0;
};

} // namespace troupe::net
