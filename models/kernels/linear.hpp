// y = x W^T + b over packed tokens, and its three gradients, on top of gemm.
// T rows, W is [out, in]. Views of buffers are a pointer and a row stride.
#pragma once

#include "models/kernels/backend.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::models {

/// The number of rows of a product and its operand type (gemm.hpp).
struct ProductRows {
  std::int64_t count = 0;
  DType operands = DType::f32;

  ProductRows(std::int64_t rows, DType type = DType::f32)
    : count(rows),
      operands(type) {}
};

/// Rows of numbers, `stride` elements from one to the next.
struct ConstRowsView {
  ConstTypedPtr data;
  std::int64_t stride = 0;
};
struct RowsView {
  TypedPtr data;
  std::int64_t stride = 0;

  operator ConstRowsView() const {
    return {data, stride};
  }
};

/// Computes y[T, out] (+)= x[T, in] W^T + bias; an undefined bias means none.
void linear(Backend& backend, ProductRows rows, ConstRowsView x,
            const at::Tensor& weight, const at::Tensor& bias, RowsView y,
            bool accumulate = false);
/// Computes dx[T, in] (+)= dy[T, out] W.
void linear_grad_input(Backend& backend, ProductRows rows, ConstRowsView dy,
                       const at::Tensor& weight, RowsView dx,
                       bool accumulate = false);
/// Computes dW[out, in] += dy^T x; nothing if dW is undefined, for a frozen
/// weight.
void linear_grad_weight(Backend& backend, ProductRows rows, ConstRowsView dy,
                        ConstRowsView x, const at::Tensor& d_weight);

} // namespace troupe::models
