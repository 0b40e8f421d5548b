#include "models/kernels/gemm_grid.hpp"

#include "models/kernels/gemm_kernels.hpp"

namespace troupe::models {

namespace {

constexpr std::int64_t gemm_packing_rows = 12; // cost of packing B, in rows

std::int64_t grid_share(std::int64_t count, std::int64_t parts) {
  return (count + parts - 1) / parts;
}

} // namespace

GemmGrid gemm_grid(std::int64_t tiles, std::int64_t panels,
                   const gemm_detail::Kernels& kernels, std::int64_t threads) {
  GemmGrid best;
  std::int64_t best_cost = 0;
  for (std::int64_t cols = 1; cols <= threads; ++cols) {
    const std::int64_t rows = threads / cols;
    const std::int64_t cost
      = grid_share(panels, cols) * kernels.panel_cols
        * (grid_share(tiles, rows) * kernels.tile_rows + gemm_packing_rows);
    if (best_cost == 0 || cost < best_cost) {
      best_cost = cost;
      best = {rows, cols};
    }
  }
  return best;
}

} // namespace troupe::models
