// A growing block of fp32 numbers, 64-byte aligned (I8: the same vector path
// everywhere), kept for reuse: fresh pages cost more than the arithmetic of a
// small model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace troupe::models {

class AlignedFloats {
public:
  static constexpr std::size_t alignment_bytes = 64;

  AlignedFloats() = default;
  explicit AlignedFloats(std::int64_t count) {
    reserve(count);
  }
  /// At least `count` floats of unspecified content; keeps the block if it is
  /// large enough, else the old content is gone.
  float* reserve(std::int64_t count) {
    if (count > capacity_) {
      data_.reset(static_cast<float*>(
        ::operator new (static_cast<std::size_t>(count) * sizeof(float),
                        std::align_val_t{alignment_bytes})));
      capacity_ = count;
    }
    return data_.get();
  }
  float* data() const {
    return data_.get();
  }
  std::int64_t capacity() const {
    return capacity_;
  }

private:
  struct Free {
    void operator()(float* p) const {
      ::operator delete (p, std::align_val_t{alignment_bytes});
    }
  };
  std::unique_ptr<float, Free> data_;
  std::int64_t capacity_ = 0;
};

} // namespace troupe::models
