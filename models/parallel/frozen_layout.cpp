#include "models/parallel/frozen_layout.hpp"

#include "config/model/product_operands.hpp"
#include "models/parallel/parameters.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace troupe::models {

FrozenLayout frozen_layout(const std::vector<ParameterShape>& shapes,
                           std::int64_t elements) {
  std::vector<ParameterShape> fp32;
  std::ranges::copy_if(shapes, std::back_inserter(fp32),
                       std::not_fn(read_by_products));
  const PaddedOffsets beside = padded_offsets(fp32);
  const std::int64_t first = (elements + 31) / 32 * 16;
  FrozenLayout layout{.size = first + beside.size};
  auto next = beside.offsets.begin();
  for (const ParameterShape& shape : shapes)
    layout.fp32_offsets.push_back(
      read_by_products(shape) ? FrozenLayout::in_bf16 : first + *next++);
  return layout;
}

} // namespace troupe::models
