// Products of bf16 operands with fp32 sums. A 32-bit lane holds two neighbours
// of k, which vdpbf16ps multiplies and adds at once: twice the products of an
// fp32 kernel per instruction. Operands are rounded (to nearest, ties to even)
// while they are packed. On other processors the fp32 kernels run on operands
// rounded in the same way: the same numbers except for the order inside a pair.
#include "models/kernels/gemm_kernels.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/transpose16.hpp"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace troupe::models::gemm_detail {

namespace {

constexpr int bf16_rows = 12;
constexpr std::int64_t bf16_cols = 32;

#define TROUPE_BF16                                                            \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

template <int Rows>
TROUPE_BF16 void bf16_tile(const Tile& t) {
  __m512 acc[Rows][2];
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i)
    acc[i][0] = acc[i][1] = _mm512_setzero_ps();
  const float* a = t.a;
  const float* b = t.panel;
  const std::int64_t rs = t.a_row_stride;
  const std::int64_t cs = t.a_col_stride;
  for (std::int64_t k = 0; k < t.k; ++k) {
    const auto b0 = (__m512bh)_mm512_load_ps(b);
    const auto b1 = (__m512bh)_mm512_load_ps(b + 16);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      const auto x = (__m512bh)_mm512_set1_ps(a[i * rs]);
      acc[i][0] = _mm512_dpbf16_ps(acc[i][0], x, b0);
      acc[i][1] = _mm512_dpbf16_ps(acc[i][1], x, b1);
    }
    a += cs;
    b += bf16_cols;
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
void bf16_dispatch(const Tile& tile, std::int64_t rows,
                   std::index_sequence<I...>) {
  using Function = void (*)(const Tile&);
  static constexpr Function table[] = {&bf16_tile<static_cast<int>(I) + 1>...};
  table[rows - 1](tile);
}

void bf16_multiply(const Tile& tile, std::int64_t rows) {
  bf16_dispatch(tile, rows, std::make_index_sequence<bf16_rows>{});
}

__mmask16 bf16_mask(std::int64_t count) {
  return static_cast<__mmask16>(
    count >= 16 ? 0xffffU : (1U << (count < 0 ? 0 : count)) - 1U);
}

// Returns 32 floats as 16 pairs of neighbours, zeros after `count`.
TROUPE_BF16 __m512 bf16_pairs(const float* from, std::int64_t count) {
  const __m512 low = _mm512_maskz_loadu_ps(bf16_mask(count), from);
  const __m512 high = _mm512_maskz_loadu_ps(bf16_mask(count - 16), from + 16);
  return (__m512)_mm512_cvtne2ps_pbh(high, low);
}

TROUPE_BF16 void bf16_pack_transposed(const float* b, std::int64_t stride,
                                      std::int64_t k, std::int64_t cols,
                                      float* panel) {
  __m512 r[16];
  for (std::int64_t k0 = 0; k0 < k; k0 += 32) {
    const std::int64_t lanes = (std::min<std::int64_t>(k - k0, 32) + 1) / 2;
    for (std::int64_t half = 0; half < 2; ++half) {
      for (std::int64_t i = 0; i < 16; ++i)
        r[i] = half * 16 + i < cols
                 ? bf16_pairs(b + (half * 16 + i) * stride + k0, k - k0)
                 : _mm512_setzero_ps();
      transpose16(r);
      for (std::int64_t j = 0; j < lanes; ++j)
        _mm512_store_ps(panel + (k0 / 2 + j) * bf16_cols + half * 16, r[j]);
    }
  }
}

// Returns 16 columns of two rows as pairs.
TROUPE_BF16 __m512 bf16_zip(__m512 even, __m512 odd) {
  const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(even));
  const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(odd));
  return (__m512)_mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

TROUPE_BF16 void bf16_pack_rows(const float* from, std::int64_t stride,
                                std::int64_t k, std::int64_t count, float* to,
                                std::int64_t width) {
  const __mmask16 first = bf16_mask(count);
  const __mmask16 second = bf16_mask(count - 16);
  const __mmask16 kept = bf16_mask(width);
  for (std::int64_t i = 0; i < k; i += 2, from += 2 * stride, to += width) {
    const float* next = from + stride;
    const bool pair = i + 1 < k;
    const __mmask16 next_first = pair ? first : bf16_mask(0);
    const __mmask16 next_second = pair ? second : bf16_mask(0);
    _mm512_mask_storeu_ps(to, kept,
                          bf16_zip(_mm512_maskz_loadu_ps(first, from),
                                   _mm512_maskz_loadu_ps(next_first, next)));
    if (width > 16)
      _mm512_storeu_ps(to + 16,
                       bf16_zip(_mm512_maskz_loadu_ps(second, from + 16),
                                _mm512_maskz_loadu_ps(next_second, next + 16)));
  }
}

TROUPE_BF16 void bf16_pack_along(const float* from, std::int64_t stride,
                                 std::int64_t k, std::int64_t rows, float* to) {
  const std::int64_t lanes = (k + 1) / 2;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k0 = 0; k0 < k; k0 += 32)
      _mm512_mask_storeu_ps(to + i * lanes + k0 / 2, bf16_mask(lanes - k0 / 2),
                            bf16_pairs(from + i * stride + k0, k - k0));
}

#undef TROUPE_BF16

// -- without that instruction -------------------------------------------------

void bf16_round(float* x, std::int64_t count) {
  on_best_isa([&] {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(x[i]);
      const std::uint32_t rounded
        = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
      const bool number = (bits & 0x7fffffffU) <= 0x7f800000U;
      x[i] = std::bit_cast<float>(number ? rounded : bits);
    }
  });
}

void rounded_pack_transposed(const float* b, std::int64_t stride,
                             std::int64_t k, std::int64_t cols, float* panel) {
  const Kernels& plain = fp32_kernels();
  plain.pack_transposed(b, stride, k, cols, panel);
  bf16_round(panel, k * plain.panel_cols);
}

void rounded_pack_rows(const float* from, std::int64_t stride, std::int64_t k,
                       std::int64_t count, float* to, std::int64_t width) {
  fp32_kernels().pack_rows(from, stride, k, count, to, width);
  bf16_round(to, k * width);
}

void rounded_pack_along(const float* from, std::int64_t stride, std::int64_t k,
                        std::int64_t rows, float* to) {
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(from + i * stride, k, to + i * k);
  bf16_round(to, rows * k);
}

} // namespace

const Kernels& avx512_bf16_kernels() {
  static const Kernels kernels{
    "avx512_bf16",         bf16_rows,        bf16_cols,
    /*step_depth=*/2,      /*step_lanes=*/1, &bf16_multiply,
    &bf16_pack_transposed, &bf16_pack_rows,  &bf16_pack_along};
  return kernels;
}

const Kernels& rounding_kernels() {
  static const Kernels kernels = [] {
    Kernels rounding = fp32_kernels();
    rounding.name = "rounded fp32";
    rounding.pack_transposed = &rounded_pack_transposed;
    rounding.pack_rows = &rounded_pack_rows;
    rounding.pack_along = &rounded_pack_along;
    return rounding;
  }();
  return kernels;
}

} // namespace troupe::models::gemm_detail
