// Products of many weights at once, each with rows of its own: the experts of a
// layer, whose tokens lie in order of expert. A GPU computes all of them in one
// launch, where one product after the other would leave most of it idle; the
// host loops over them, and each element has the bits that `linear` gives it.
//
// G groups, R rows, those of group g from begin_G[g] on.
#pragma once

#include "config/base/dtype.hpp"
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

} // namespace troupe::models
