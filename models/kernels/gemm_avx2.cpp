// 6 x 16 tile: 12 accumulators of 8 floats, two registers of B, A broadcast.
#include "models/kernels/gemm_kernels.hpp"

#include <immintrin.h>

#include <algorithm>
#include <utility>

namespace troupe::models::gemm_detail {

namespace {

constexpr int avx2_rows = 6;
constexpr std::int64_t avx2_cols = 16;

template <int Rows>
__attribute__((target("avx2,fma"))) void avx2_tile(const Tile& t) {
  __m256 acc[Rows][2];
#pragma GCC unroll 6
  for (int i = 0; i < Rows; ++i)
    acc[i][0] = acc[i][1] = _mm256_setzero_ps();
  const float* a = t.a;
  const float* b = t.panel;
  const std::int64_t rs = t.a_row_stride;
  const std::int64_t cs = t.a_col_stride;
  for (std::int64_t k = 0; k < t.k; ++k) {
    const __m256 b0 = _mm256_load_ps(b);
    const __m256 b1 = _mm256_load_ps(b + 8);
#pragma GCC unroll 6
    for (int i = 0; i < Rows; ++i) {
      const __m256 x = _mm256_set1_ps(a[i * rs]);
      acc[i][0] = _mm256_fmadd_ps(x, b0, acc[i][0]);
      acc[i][1] = _mm256_fmadd_ps(x, b1, acc[i][1]);
    }
    a += cs;
    b += avx2_cols;
  }
#pragma GCC unroll 6
  for (int i = 0; i < Rows; ++i) {
    float* c = t.c + i * t.c_stride;
    if (t.accumulate) {
      acc[i][0] = _mm256_add_ps(_mm256_loadu_ps(c), acc[i][0]);
      acc[i][1] = _mm256_add_ps(_mm256_loadu_ps(c + 8), acc[i][1]);
    }
    _mm256_storeu_ps(c, acc[i][0]);
    _mm256_storeu_ps(c + 8, acc[i][1]);
  }
}

template <std::size_t... I>
void avx2_dispatch(const Tile& tile, std::int64_t rows,
                   std::index_sequence<I...>) {
  using Function = void (*)(const Tile&);
  static constexpr Function table[] = {&avx2_tile<static_cast<int>(I) + 1>...};
  table[rows - 1](tile);
}

void avx2_multiply(const Tile& tile, std::int64_t rows) {
  avx2_dispatch(tile, rows, std::make_index_sequence<avx2_rows>{});
}

// Transposing eight columns at a time in registers would save little: the
// stores are contiguous and the eight streams stay in the first-level cache.
__attribute__((target("avx2,fma"))) void
avx2_pack_transposed(const float* b, std::int64_t stride, std::int64_t k,
                     std::int64_t cols, float* panel) {
  for (std::int64_t k0 = 0; k0 < k; k0 += 8) {
    const std::int64_t end = k - k0 < 8 ? k : k0 + 8;
    for (std::int64_t j = 0; j < avx2_cols; ++j)
      for (std::int64_t i = k0; i < end; ++i)
        panel[i * avx2_cols + j] = j < cols ? b[j * stride + i] : 0.0F;
  }
}

void avx2_pack_rows(const float* from, std::int64_t stride, std::int64_t k,
                    std::int64_t count, float* to, std::int64_t width) {
  for (std::int64_t i = 0; i < k; ++i, from += stride, to += width) {
    std::copy(from, from + count, to);
    std::fill(to + count, to + width, 0.0F);
  }
}

} // namespace

const Kernels& avx2_kernels() {
  static const Kernels kernels{"avx2",
                               avx2_rows,
                               avx2_cols,
                               /*step_depth=*/1,
                               /*step_lanes=*/1,
                               &avx2_multiply,
                               &avx2_pack_transposed,
                               &avx2_pack_rows,
                               /*pack_along=*/nullptr};
  return kernels;
}

} // namespace troupe::models::gemm_detail
