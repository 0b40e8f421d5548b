// The weights of products in bf16, beside their fp32 masters: what kernels of a
// backend that stores operands in bf16 read, so that nothing is rounded again
// for each product. Whoever may have changed the masters makes them stale; they
// are rounded as a whole before the next use, or kept equal by the optimizer's
// own kernel. Where dp ranks gather weights for kernels they send these.
#pragma once

#include "models/kernels/typed_block.hpp"

#include <cstdint>

namespace troupe::models {

class RowKernels;

/// Rounded numbers of a plane, or with z3 of its window. Not allocated until
/// asked, and never where products read fp32.
class RoundedWeights {
public:
  RoundedWeights() = default;
  /// Allocates `count` numbers in `memory`, unless `products` read fp32.
  RoundedWeights(std::int64_t count, DType products,
                 const net::BlockMemory* memory);

  /// Returns whether products read these, allocated or not.
  bool exist() const {
    return count_ > 0;
  }
  /// Returns the first number; null while the masters are away.
  TypedPtr data() const {
    return block_.data();
  }
  /// Returns the bytes that are allocated.
  std::uint64_t num_bytes() const;
  bool is_current() const {
    return is_current_ || !exist();
  }

  void make_stale() {
    is_current_ = false;
  }
  /// Records that others have written all that products read.
  void make_current() {
    is_current_ = true;
  }
  /// Rounds the masters if these are stale.
  void refresh(const float* masters, RowKernels& backend);

  /// Frees the memory with that of the masters.
  void leave_device();
  /// Allocates it again, stale and at another address.
  void return_to_device();

private:
  std::int64_t count_ = 0; ///< 0: products read fp32
  const net::BlockMemory* memory_ = nullptr;
  TypedBlock block_;
  bool is_current_ = false;
};

} // namespace troupe::models
