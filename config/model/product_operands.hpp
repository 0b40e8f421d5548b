// Which weights kernels read in the type of products' operands. With bf16 those
// are rounded; norms, biases, routers and scalar heads are read in fp32.
#pragma once

#include "config/model/parameter_shape.hpp"

namespace troupe {

/// Returns whether the parameter is read in the type of products' operands: by
/// products, or as an embedding.
bool read_by_products(const ParameterShape& parameter);

} // namespace troupe
