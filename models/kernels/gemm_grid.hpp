// How threads share a product: C is cut into rows of tiles times columns of
// panels, one part per thread, so that the largest part is cheapest. Only whole
// tiles are cut, so no element's arithmetic depends on the thread count.
#pragma once

#include <cstdint>

namespace troupe::models {

namespace gemm_detail {
struct Kernels;
}

struct GemmGrid {
  std::int64_t row_parts = 1;
  std::int64_t panel_parts = 1;
};

/// Returns the grid for a C of `tiles` tiles of rows and `panels` panels of
/// columns.
GemmGrid gemm_grid(std::int64_t tiles, std::int64_t panels,
                   const gemm_detail::Kernels& kernels, std::int64_t threads);

} // namespace troupe::models
