// Reference kernels in plain C++, for processors without AVX2: the vector
// kernels compute the same sums.
#include "models/kernels/gemm_kernels.hpp"

#include <algorithm>

namespace troupe::models::gemm_detail {

namespace {

constexpr std::int64_t plain_rows = 4;
constexpr std::int64_t plain_cols = 16;

void plain_multiply(const Tile& t, std::int64_t rows) {
  float acc[plain_rows][plain_cols] = {};
  for (std::int64_t k = 0; k < t.k; ++k) {
    const float* b = t.panel + k * plain_cols;
    for (std::int64_t i = 0; i < rows; ++i) {
      const float x = t.a[i * t.a_row_stride + k * t.a_col_stride];
#pragma omp simd
      for (std::int64_t j = 0; j < plain_cols; ++j)
        acc[i][j] += x * b[j];
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    float* c = t.c + i * t.c_stride;
    for (std::int64_t j = 0; j < plain_cols; ++j)
      c[j] = t.accumulate ? c[j] + acc[i][j] : acc[i][j];
  }
}

void plain_pack_transposed(const float* b, std::int64_t stride, std::int64_t k,
                           std::int64_t cols, float* panel) {
  for (std::int64_t i = 0; i < k; ++i)
    for (std::int64_t j = 0; j < plain_cols; ++j)
      panel[i * plain_cols + j] = j < cols ? b[j * stride + i] : 0.0F;
}

void plain_pack_rows(const float* from, std::int64_t stride, std::int64_t k,
                     std::int64_t count, float* to, std::int64_t width) {
  for (std::int64_t i = 0; i < k; ++i, from += stride, to += width) {
    std::copy(from, from + count, to);
    std::fill(to + count, to + width, 0.0F);
  }
}

} // namespace

const Kernels& plain_kernels() {
  static const Kernels kernels{"plain",
                               plain_rows,
                               plain_cols,
                               /*step_depth=*/1,
                               /*step_lanes=*/1,
                               &plain_multiply,
                               &plain_pack_transposed,
                               &plain_pack_rows,
                               /*pack_along=*/nullptr};
  return kernels;
}

} // namespace troupe::models::gemm_detail
