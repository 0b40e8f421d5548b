// Flash attention that computes nothing and counts what the kernels of a GPU
// do: one launch forward; backward three, and two sums over the heads that
// share keys.
#pragma once

#include "models/gpu/flash_attention.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "tests/support/models/aten_counter.hpp"

#include <cstdint>
#include <cstring>

namespace troupe::testing {

class CountedFlash final : public models::FlashKernel {
public:
  at::ScalarType operands() const override {
    return at::kBFloat16;
  }
  models::FlashContext forward(const models::FlashCall& call) const override {
    const at::Tensor out = like(call.queries_TAD);
    const at::Tensor lse
      = zeros({call.queries_TAD.size(1), call.queries_TAD.size(0)}, at::kFloat);
    AtenCounter::add("flash", 1,
                     bytes(call.queries_TAD) * 2 + bytes(call.keys_KGD) * 2
                       + bytes(lse));
    return {out, lse};
  }
  models::FlashGradients
  backward(const models::FlashCall& call, const models::FlashContext& found,
           const at::Tensor& d_context_TAD) const override {
    const std::int64_t q = bytes(call.queries_TAD);
    const std::int64_t k = bytes(call.keys_KGD);
    AtenCounter::add("flash_backward", 5,
                     3 * q + 2 * k + bytes(found.lse_AT) // in
                       + q + 2 * q                       // dq, dk and dv of all
                       + 2 * q + 2 * k);                 // their sums
    return {like(d_context_TAD), like(call.keys_KGD), like(call.values_KGD)};
  }

private:
  static std::int64_t bytes(const at::Tensor& x) {
    return x.numel() * x.element_size();
  }
  /// Returns zeros without an operation that would be counted.
  static at::Tensor zeros(at::IntArrayRef sizes, at::ScalarType type) {
    const at::Tensor x = at::empty(sizes, type);
    std::memset(x.mutable_data_ptr(), 0, x.nbytes());
    return x;
  }
  static at::Tensor like(const at::Tensor& x) {
    return zeros(x.sizes(), x.scalar_type());
  }
};

} // namespace troupe::testing
