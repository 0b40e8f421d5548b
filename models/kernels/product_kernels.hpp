// Products of matrices: of two, with weights that are prepared for generation,
// and with a group of weights at once. A part of backend.hpp.
#pragma once

#include "config/base/defaults.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/grouped_product.hpp"
#include "models/kernels/prepared_weight.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

namespace troupe::models {

class ProductKernels {
public:
  virtual ~ProductKernels() = default;

  virtual void gemm(const GemmShape& shape, const ConstTypedMatrix& a,
                    const ConstTypedMatrix& b, const TypedMatrix& c,
                    const GemmOptions& options)
    = 0;

  /// Prepares weights, stacked along their rows, as one: in place of `old` if
  /// that has their shape.
  virtual std::unique_ptr<PreparedWeight>
  prepare(std::span<const at::Tensor> parts, DType operands,
          std::unique_ptr<PreparedWeight> old = nullptr)
    = 0;
  /// Computes y [rows, out] (+)= x [rows, in] weight^T + bias; rows of y are
  /// `y.stride` apart.
  virtual void product(std::int64_t rows, ConstTypedPtr x,
                       const PreparedWeight& weight, const TypedMatrix& y,
                       const GemmOptions& options)
    = 0;

  /// Computes y[R, out] = x[R, in] W^T.
  virtual void grouped_product(const GroupedShape& shape,
                               const ConstTypedMatrix& x,
                               GroupedWeights weights, const TypedMatrix& y);
  /// Computes dx[R, in] (+)= dy[R, out] W.
  virtual void grouped_grad_x(const GroupedShape& shape,
                              const ConstTypedMatrix& dy,
                              GroupedWeights weights, const TypedMatrix& dx);
  /// Computes dW[out, in] += dy^T x of each group.
  virtual void grouped_grad_w(const GroupedShape& shape,
                              const ConstTypedMatrix& dy,
                              const ConstTypedMatrix& x, GroupedGrads grads);
  /// Returns how many rows of groups are gathered for a product at a time, but
  /// for a group that has more.
  virtual std::int64_t grouped_rows_at_once() const {
    return defaults::grouped_rows_at_once;
  }
};

} // namespace troupe::models
