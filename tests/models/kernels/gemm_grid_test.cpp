#include "models/kernels/gemm_grid.hpp"
#include "models/kernels/gemm_kernels.hpp"

#include <gtest/gtest.h>

namespace troupe::models {
namespace {

GemmGrid grid_of(std::int64_t tiles, std::int64_t panels,
                 std::int64_t threads) {
  return gemm_grid(tiles, panels, gemm_detail::plain_kernels(), threads);
}

TEST(GemmGrid, ManyRowsAreSplitByRowsAndFewByPanels) {
  EXPECT_EQ(grid_of(1000, 1, 4).row_parts, 4);
  EXPECT_EQ(grid_of(1, 64, 4).panel_parts, 4);
}

TEST(GemmGrid, NeverHasMorePartsThanThreads) {
  for (std::int64_t threads = 1; threads < 12; ++threads)
    for (std::int64_t tiles : {1, 3, 17, 200})
      for (std::int64_t panels : {1, 5, 86}) {
        const GemmGrid grid = grid_of(tiles, panels, threads);
        EXPECT_GE(grid.row_parts, 1);
        EXPECT_GE(grid.panel_parts, 1);
        EXPECT_LE(grid.row_parts * grid.panel_parts, threads);
      }
}

} // namespace
} // namespace troupe::models
