// Fused attention as its kernels specify it, score by score in double, on the
// CPU and in any type: a substitute for a GPU's. It does not use the product's
// attention: a sequence's last query is at its last key, the others at those
// before it.
#pragma once

#include "models/gpu/flash_attention.hpp"

#include <functional>

namespace troupe::testing {

class SlowFlash final : public models::FlashKernel {
public:
  explicit SlowFlash(at::ScalarType type) : type_(type) {}

  at::ScalarType operands() const override {
    return type_;
  }
  models::FlashContext forward(const models::FlashCall& call) const override;
  models::FlashGradients
  backward(const models::FlashCall& call, const models::FlashContext& found,
           const at::Tensor& d_context_TAD) const override;

  int forward_calls() const {
    return forward_calls_;
  }
  int backward_calls() const {
    return backward_calls_;
  }
  /// Returns how many keys, over all calls, were repeated for further
  /// sequences.
  std::int64_t copied_keys() const {
    return copied_keys_;
  }

private:
  void check(const models::FlashCall& call) const;

  at::ScalarType type_;
  mutable int forward_calls_ = 0;
  mutable int backward_calls_ = 0;
  mutable std::int64_t copied_keys_ = 0;
};

} // namespace troupe::testing
