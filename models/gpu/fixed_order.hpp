// Makes libtorch's GPU kernels sum in the same order each time (I8): where a
// kernel has a faster and a deterministic variant, the latter is used while an
// object of this class exists. libtorch has one switch per process, so such
// objects exclude each other. Kernels that other threads launch meanwhile are
// correct too, in the deterministic variant.
#pragma once

#include <mutex>

namespace troupe::models {

class FixedOrder {
public:
  FixedOrder();
  ~FixedOrder();
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;

  /// Sets the environment so that products may run while the switch is on,
  /// which libtorch refuses otherwise. Must run before libtorch's first product
  /// on a GPU.
  static void allow_products();

private:
  std::unique_lock<std::mutex> alone_;
};

} // namespace troupe::models
