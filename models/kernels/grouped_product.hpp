// Products of many weights at once, each with rows of its own: the experts of a
// layer, whose tokens lie in order of expert. A GPU computes all of them in one
// launch, where one product after the other would leave most of it idle; the
// host loops over them, and each element has the bits that `linear` gives it.
//
// G groups, R rows, those of group g from begin_G[g] on.
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/dtype.hpp"
#include "models/kernels/device_access.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::models {

/// The rows of each group, and the shape [out, in] of each group's weight.
struct GroupedShape {
  std::span<const std::int64_t> begin_G; ///< [G+1], the first one is 0
  std::int64_t out = 0;
  std::int64_t in = 0;
  /// Weights that lie below each other in [out, in]: gate and up of an expert.
  /// The host adds the gradients of inputs of one after the other.
  std::int64_t parts = 1;
  bool accumulate = false; ///< gradients of inputs are added
  DType operands = DType::f32;

  std::size_t groups() const {
    return begin_G.size() - 1;
  }
  std::int64_t rows_of(std::size_t group) const {
    return begin_G[group + 1] - begin_G[group];
  }
};

/// The weights [out, in] of each group, and their gradients; null: frozen.
using GroupedWeights = std::span<const ConstTypedPtr>;
using GroupedGrads = std::span<float* const>;

/// Products of a device, of one weight and of a group's.
class GroupedProducts : public DeviceAccess {
public:
  virtual void gemm(const GemmShape& shape, const ConstTypedMatrix& a,
                    const ConstTypedMatrix& b, const TypedMatrix& c,
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
