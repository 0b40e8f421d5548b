#include "config/model/parameter_shape.hpp"

namespace troupe {

std::int64_t StoredAs::row_of(std::int64_t row) const {
  if (heads.head_dim == 0)
    return first_row + row;
  const std::int64_t head = row / heads.head_dim;
  std::int64_t within = row % heads.head_dim;
  if (within < heads.paired) {
    const std::int64_t half = heads.paired / 2;
    within = within < half ? 2 * within : 2 * (within - half) + 1;
  }
  return first_row + head * heads.step + within;
}

} // namespace troupe
