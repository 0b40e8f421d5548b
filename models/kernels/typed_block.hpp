// A growing block of numbers of one type in a device's memory
// (aligned_floats.hpp).
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <cstdint>

namespace troupe::models {

class TypedBlock {
public:
  explicit TypedBlock(const net::BlockMemory* memory = nullptr,
                      DType type = DType::f32)
    : words_(memory),
      type_(type) {}

  /// Returns at least `count` numbers of unspecified content. Keeps the block
  /// if it is large enough; otherwise the old content is lost.
  TypedPtr reserve(std::int64_t count) {
    const auto bytes = count * static_cast<std::int64_t>(size_bytes(type_));
    return {words_.reserve((bytes + 3) / 4), type_};
  }
  TypedPtr data() const {
    return {words_.data(), type_};
  }
  DType type() const {
    return type_;
  }

private:
  AlignedFloats words_; ///< of 32 bits
  DType type_;
};

} // namespace troupe::models
