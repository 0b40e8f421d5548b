// 12 x 32 tile: 24 accumulators of 16 floats, two registers of B, A broadcast.
#include "models/kernels/gemm_kernels.hpp"
#include "models/kernels/transpose16.hpp"

#include <immintrin.h>

#include <utility>

namespace troupe::models::gemm_detail {

namespace {

constexpr int avx512_rows = 12;
constexpr std::int64_t avx512_cols = 32;

template <int Rows>
__attribute__((target("avx512f"))) void avx512_tile(const Tile& t) {
  __m512 acc[Rows][2];
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i)
    acc[i][0] = acc[i][1] = _mm512_setzero_ps();
  const float* a = t.a;
  const float* b = t.panel;
  const std::int64_t rs = t.a_row_stride;
  const std::int64_t cs = t.a_col_stride;
  const float* ahead = t.ahead != nullptr ? t.ahead : b;
  for (std::int64_t k = 0; k < t.k; ++k) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(ahead + t.ahead_step / 2),
                 _MM_HINT_T1);
    ahead += t.ahead_step;
    const __m512 b0 = _mm512_load_ps(b);
    const __m512 b1 = _mm512_load_ps(b + 16);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      const __m512 x = _mm512_set1_ps(a[i * rs]);
      acc[i][0] = _mm512_fmadd_ps(x, b0, acc[i][0]);
      acc[i][1] = _mm512_fmadd_ps(x, b1, acc[i][1]);
    }
    a += cs;
    b += avx512_cols;
  }
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i) {
    float* c = t.c + i * t.c_stride;
    if (t.accumulate) {
      acc[i][0] = _mm512_add_ps(_mm512_loadu_ps(c), acc[i][0]);
      acc[i][1] = _mm512_add_ps(_mm512_loadu_ps(c + 16), acc[i][1]);
    }
    _mm512_storeu_ps(c, acc[i][0]);
    _mm512_storeu_ps(c + 16, acc[i][1]);
  }
}

template <std::size_t... I>
void avx512_dispatch(const Tile& tile, std::int64_t rows,
                     std::index_sequence<I...>) {
  using Function = void (*)(const Tile&);
  static constexpr Function table[]
    = {&avx512_tile<static_cast<int>(I) + 1>...};
  table[rows - 1](tile);
}

void avx512_multiply(const Tile& tile, std::int64_t rows) {
  avx512_dispatch(tile, rows, std::make_index_sequence<avx512_rows>{});
}

// Transposes 16 rows of 16 floats.
__attribute__((target("avx512f"))) void
avx512_transpose(const float* b, std::int64_t stride, std::int64_t rows,
                 __mmask16 columns, __m512* r) {
  for (int i = 0; i < 16; ++i)
    r[i] = i < rows ? _mm512_maskz_loadu_ps(columns, b + i * stride)
                    : _mm512_setzero_ps();
  transpose16(r);
}

__attribute__((target("avx512f"))) void
avx512_pack_transposed(const float* b, std::int64_t stride, std::int64_t k,
                       std::int64_t cols, float* panel) {
  __m512 r[16];
  for (std::int64_t k0 = 0; k0 < k; k0 += 16) {
    const std::int64_t depth = k - k0 < 16 ? k - k0 : 16;
    const auto mask = static_cast<__mmask16>((1U << depth) - 1U);
    for (std::int64_t half = 0; half < 2; ++half) {
      avx512_transpose(b + half * 16 * stride + k0, stride, cols - half * 16,
                       mask, r);
      for (std::int64_t j = 0; j < depth; ++j)
        _mm512_store_ps(panel + (k0 + j) * avx512_cols + half * 16, r[j]);
    }
  }
}

__attribute__((target("avx512f"))) void
avx512_pack_rows(const float* from, std::int64_t stride, std::int64_t k,
                 std::int64_t count, float* to, std::int64_t width) {
  const auto mask_of = [](std::int64_t floats) {
    return static_cast<__mmask16>(
      floats >= 16 ? 0xffffU : (1U << (floats < 0 ? 0 : floats)) - 1U);
  };
  const __mmask16 first = mask_of(count);
  const __mmask16 second = mask_of(count - 16);
  const __mmask16 kept = mask_of(width);
  for (std::int64_t i = 0; i < k; ++i, from += stride, to += width) {
    _mm512_mask_storeu_ps(to, kept, _mm512_maskz_loadu_ps(first, from));
    if (width > 16)
      _mm512_storeu_ps(to + 16, _mm512_maskz_loadu_ps(second, from + 16));
  }
}

} // namespace

const Kernels& avx512_kernels() {
  static const Kernels kernels{"avx512",
                               avx512_rows,
                               avx512_cols,
                               /*step_depth=*/1,
                               /*step_lanes=*/1,
                               &avx512_multiply,
                               &avx512_pack_transposed,
                               &avx512_pack_rows,
                               /*pack_along=*/nullptr};
  return kernels;
}

} // namespace troupe::models::gemm_detail
