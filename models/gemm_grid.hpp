// How threads share a product: C is cut into rows of tiles times columns of
// panels, one part a thread, so that the largest part is cheapest. Only whole
// tiles are cut, so no element's arithmetic depends on the number of threads.
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

/// For C of so many tiles of rows and panels of columns.
GemmGrid gemm_grid(std::int64_t tiles, std::int64_t panels,
                   const gemm_detail::Kernels& kernels, std::int64_t threads);

} // namespace troupe::models
