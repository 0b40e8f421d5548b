// Sums in the same order each time (I8), where libtorch's kernels for GPUs have
// two ways and take the faster one: while an object of this lives, they take
// the other. libtorch has one switch a process, so lives do not overlap. What
// other threads call meanwhile computes the same in its own other way.
#pragma once

#include <mutex>

namespace troupe::models {

class FixedOrder {
public:
  FixedOrder();
  ~FixedOrder();
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;

  /// Before libtorch's first product on a GPU: its products refuse to run while
  /// the switch is on, unless the environment says that they may.
  static void allow_products();

private:
  std::unique_lock<std::mutex> alone_;
};

} // namespace troupe::models
