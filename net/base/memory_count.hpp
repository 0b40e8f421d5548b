// Counts the memory that the tensors of one device use, charged by the code
// that allocates it: now, and at peak since begin_peak(). Devices of one
// process share its heap, so a device is identified by its thread: an
// allocation there charges the thread's count, and is credited to the same
// count wherever it is freed. Host memory used by a device's work (rows, copies
// for readers, scratch of kernels) is not included.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace troupe::net {

/// Lock-free counter; outlives what is charged to it.
class MemoryCount {
public:
  std::uint64_t now_bytes() const {
    return now_.load(std::memory_order_relaxed);
  }
  /// Returns the most bytes since `begin_peak`.
  std::uint64_t peak_bytes() const {
    return peak_.load(std::memory_order_relaxed);
  }
  /// Restarts the peak from the current bytes.
  void begin_peak();

  /// Returns the calling thread's count; null: not counted.
  static MemoryCount* of_this_thread();
  /// Charges later allocations of the calling thread to this device.
  void count_this_thread();

private:
  friend class MemoryCharge;
  void change(std::uint64_t from_bytes, std::uint64_t to_bytes);

  std::atomic<std::uint64_t> now_{0};
  std::atomic<std::uint64_t> peak_{0};
};

/// Bytes of a device's memory, charged during the object's lifetime.
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
