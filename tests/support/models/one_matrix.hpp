// The parameters of a model that is one matrix of 2 MiB: large enough that its
// memory is mapped and unmapped as pages.
#pragma once

#include "config/model/model_shape.hpp"

#include <cstdint>
#include <vector>

namespace troupe::testing {

inline constexpr std::uint64_t kPlaneBytes = 1024 * 512 * sizeof(float);

inline std::vector<ParameterShape> one_matrix() {
  ParameterShape shape;
  shape.name = "w";
  shape.rows = 1024;
  shape.cols = 512;
  return {shape};
}

} // namespace troupe::testing
