// A growing block of fp32 numbers, 64-byte aligned (I8: the same vector path
// everywhere), kept for reuse because fresh pages cost more than the arithmetic
// of a small model. The block is in system memory or in a device's memory; only
// the latter is counted.
#pragma once

#include "net/base/block_memory.hpp"
#include "net/base/memory_count.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace troupe::models {

inline constexpr std::align_val_t floats_alignment{64};

/// Returns a block to the memory that it came from.
struct FreeFloats {
  const net::BlockMemory* memory = nullptr; ///< null: system memory

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
  /// Creates an empty block in the memory of the calling thread's device; a
  /// null `memory` means system memory. With a null `count`, bytes taken are
  /// counted elsewhere.
  explicit AlignedFloats(const net::BlockMemory* memory,
                         net::MemoryCount* count
                         = net::MemoryCount::of_this_thread())
    : data_(nullptr, FreeFloats{memory}),
      charge_(count) {}

  /// Returns at least `count` floats of unspecified content. Keeps the block if
  /// it is large enough; otherwise the old content is lost.
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
  /// Frees the block.
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
