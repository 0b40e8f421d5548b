// A growing block of fp32 numbers, 64-byte aligned (I8: the same vector path
// everywhere), kept for reuse: fresh pages cost more than the arithmetic of a
// small model. In the system's memory or a device's; only the latter is
// counted.
#pragma once

#include "net/block_memory.hpp"
#include "net/memory_count.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace troupe::models {

inline constexpr std::align_val_t floats_alignment{64};

/// Gives a block back to where it came from.
struct FreeFloats {
  const net::BlockMemory* memory = nullptr; ///< null: the system's

  void operator()(float* p) const {
    if (memory != nullptr)
      memory->give(p);
    else
      ::operator delete(p, floats_alignment);
  }
};

class AlignedFloats {
public:
  AlignedFloats() = default;
  explicit AlignedFloats(std::int64_t count) {
    reserve(count);
  }
  /// Empty, of the device whose thread this is; null: it computes in the
  /// system's memory. `count` null: what is taken of it is counted elsewhere.
  explicit AlignedFloats(const net::BlockMemory* memory,
                         net::MemoryCount* count
                         = net::MemoryCount::of_this_thread())
    : data_(nullptr, FreeFloats{memory}),
      charge_(count) {}

  /// At least `count` floats of unspecified content; keeps the block if it is
  /// large enough, else the old content is gone.
  float* reserve(std::int64_t count) {
    if (count > capacity_) {
      const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
      const net::BlockMemory* memory = data_.get_deleter().memory;
      release();
      data_.reset(static_cast<float*>(
        memory != nullptr ? memory->take(bytes)
                          : ::operator new(bytes, floats_alignment)));
      capacity_ = count;
      charge_.set(bytes);
    }
    return data_.get();
  }
  /// Gives the block back.
  void release() {
    data_.reset();
    capacity_ = 0;
    charge_.set(0);
  }
  float* data() const {
    return data_.get();
  }
  std::int64_t capacity() const {
    return capacity_;
  }

private:
  std::unique_ptr<float, FreeFloats> data_;
  std::int64_t capacity_ = 0;
  net::MemoryCharge charge_{nullptr};
};

} // namespace troupe::models
