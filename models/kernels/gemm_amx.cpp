// 32 x 32 of C on the processor's tile unit (AMX): four accumulators of 16 x
// 16, two tiles of A, two of B. Operands are bf16, sums fp32. A step is 32
// deep; its lane j holds k = j and k = j + 16, so that packing moves no half
// words.
//
// In three parts: an fp32 number is the exact sum of three bf16 numbers. Of the
// nine products of the parts of two numbers, the six largest are added; the
// others are below 2^-24 of the whole, the rounding of an fp32 product. The
// rate is 16 / 6 of that of two fp32 units of 16 lanes.
#include "models/kernels/gemm_kernels.hpp"
#include "models/kernels/transpose16.hpp"

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace troupe::models::gemm_detail {

namespace {

constexpr std::int64_t amx_side = 16; // rows of a tile; a row is 64 bytes
constexpr std::int64_t amx_rows = 2 * amx_side;
constexpr std::int64_t amx_cols = 2 * amx_side;
constexpr std::int64_t amx_depth = 32;
constexpr std::int64_t amx_tile = amx_side * amx_side; // lanes: 1 KiB
constexpr std::int64_t amx_part = 2 * amx_tile;        // two adjacent tiles
constexpr std::int64_t amx_max_depth = 768;
constexpr std::int64_t amx_block_floats = 1 << 18; // 1 MiB

// Packed operands: [steps][parts][2 tiles][16][16 lanes].
template <int Parts>
constexpr std::int64_t amx_step = Parts* amx_part;

#define TROUPE_AMX __attribute__((target("amx-tile,amx-bf16,avx512f")))
#define TROUPE_AMX_PACK                                                        \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

// -- packing ------------------------------------------------------------------

__mmask16 amx_mask(std::int64_t count) {
  return static_cast<__mmask16>(
    count >= 16 ? 0xffffU : (1U << (count < 0 ? 0 : count)) - 1U);
}

// Stores lanes (low, high) of 16 numbers each at their place in every part.
template <int Parts>
TROUPE_AMX_PACK inline void amx_store(__m512 low, __m512 high, float* to) {
  if constexpr (Parts == 1) { // to nearest, ties to even
    const auto halves = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    const __m512i pairs = _mm512_set_epi16(
      31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
      6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    _mm512_store_si512(to, _mm512_permutexvar_epi16(pairs, halves));
  } else { // rounding of a part does not matter: the next part has the rest
    const __m512i half = _mm512_set1_epi32(0x8000);
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    for (int p = 0; p < Parts; ++p) {
      __m512i l = _mm512_castps_si512(low);
      __m512i h = _mm512_castps_si512(high);
      if (p + 1 < Parts) {
        l = _mm512_and_si512(_mm512_add_epi32(l, half), upper);
        h = _mm512_and_si512(_mm512_add_epi32(h, half), upper);
        low = _mm512_sub_ps(low, _mm512_castsi512_ps(l));
        high = _mm512_sub_ps(high, _mm512_castsi512_ps(h));
      }
      const __m512i lane = _mm512_or_si512(
        _mm512_maskz_srli_epi32(0xffff, l, 16), _mm512_and_si512(h, upper));
      _mm512_store_si512(to + p * amx_part, lane);
    }
  }
}

// Packs rows of A that are contiguous in k.
template <int Parts>
TROUPE_AMX_PACK void amx_pack_along(const float* from, std::int64_t stride,
                                    std::int64_t k, std::int64_t rows,
                                    float* to) {
  for (std::int64_t k0 = 0; k0 < k; k0 += amx_depth, to += amx_step<Parts>) {
    const __mmask16 low = amx_mask(k - k0);
    const __mmask16 high = amx_mask(k - k0 - amx_side);
    for (std::int64_t i = 0; i < rows; ++i) {
      const float* row = from + i * stride + k0;
      amx_store<Parts>(_mm512_maskz_loadu_ps(low, row),
                       _mm512_maskz_loadu_ps(high, row + amx_side),
                       to + i * amx_side);
    }
  }
}

// Packs rows of B: k of them, `stride` apart.
template <int Parts>
TROUPE_AMX_PACK void amx_pack_rows(const float* from, std::int64_t stride,
                                   std::int64_t k, std::int64_t count,
                                   float* to, std::int64_t) {
  const __mmask16 masks[2] = {amx_mask(count), amx_mask(count - amx_side)};
  const auto load = [&](std::int64_t row, int half) TROUPE_AMX_PACK -> __m512 {
    return row < k ? _mm512_maskz_loadu_ps(masks[half], from + row * stride
                                                          + half * amx_side)
                   : _mm512_setzero_ps();
  };
  for (std::int64_t k0 = 0; k0 < k; k0 += amx_depth, to += amx_step<Parts>)
    for (int half = 0; half < 2; ++half)
      for (std::int64_t r = 0; r < amx_side; ++r)
        amx_store<Parts>(load(k0 + r, half), load(k0 + r + amx_side, half),
                         to + half * amx_tile + r * amx_side);
}

// Transposes 16 x 16 numbers, of which `rows` rows and the mask's columns
// exist.
TROUPE_AMX_PACK inline void amx_transpose(const float* from,
                                          std::int64_t stride,
                                          std::int64_t rows, __mmask16 columns,
                                          __m512* r) {
  for (std::int64_t i = 0; i < amx_side; ++i)
    r[i] = i < rows ? _mm512_maskz_loadu_ps(columns, from + i * stride)
                    : _mm512_setzero_ps();
  transpose16(r);
}

// Packs B^T: columns of the panel are contiguous in k.
template <int Parts>
TROUPE_AMX_PACK void amx_pack_transposed(const float* b, std::int64_t stride,
                                         std::int64_t k, std::int64_t cols,
                                         float* panel) {
  __m512 low[amx_side];
  __m512 high[amx_side];
  for (std::int64_t k0 = 0; k0 < k; k0 += amx_depth, panel += amx_step<Parts>)
    for (std::int64_t first = 0; first < amx_cols; first += amx_side) {
      const float* from = b + first * stride + k0;
      amx_transpose(from, stride, cols - first, amx_mask(k - k0), low);
      amx_transpose(from + amx_side, stride, cols - first,
                    amx_mask(k - k0 - amx_side), high);
      for (std::int64_t r = 0; r < amx_side; ++r)
        amx_store<Parts>(low[r], high[r],
                         panel + first * amx_side + r * amx_side);
    }
}

// Packs a transposed A: its rows, one per k, hold adjacent rows of the tile.
template <int Parts>
TROUPE_AMX_PACK void amx_pack_across(const float* from, std::int64_t stride,
                                     std::int64_t k, std::int64_t rows,
                                     float* to) {
  __m512 low[amx_side];
  __m512 high[amx_side];
  for (std::int64_t k0 = 0; k0 < k; k0 += amx_depth, to += amx_step<Parts>)
    for (std::int64_t first = 0; first < rows; first += amx_side) {
      const float* at = from + k0 * stride + first;
      const __mmask16 mask = amx_mask(rows - first);
      amx_transpose(at, stride, k - k0, mask, low);
      amx_transpose(at + amx_side * stride, stride, k - k0 - amx_side, mask,
                    high);
      for (std::int64_t i = 0; i < amx_side; ++i)
        amx_store<Parts>(low[i], high[i], to + first * amx_side + i * amx_side);
    }
}

// -- multiplying --------------------------------------------------------------

struct alignas(64) AmxConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

TROUPE_AMX void amx_enter() {
  static const AmxConfig config;
  _tile_loadconfig(&config);
}

TROUPE_AMX void amx_leave() {
  _tile_release();
}

// Loads both tiles of A for two halves of C, or the first for one half.
template <bool Both>
TROUPE_AMX inline void amx_load_a(const float* a) {
  _tile_loadd(4, a, 64);
  if constexpr (Both)
    _tile_loadd(5, a + amx_tile, 64);
}

TROUPE_AMX inline void amx_load_b(const float* b) {
  _tile_loadd(6, b, 64);
  _tile_loadd(7, b + amx_tile, 64);
}

template <bool Both>
TROUPE_AMX inline void amx_products() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if constexpr (Both) {
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

template <int Parts, bool Both>
TROUPE_AMX void amx_sum(const float* a, const float* b, std::int64_t steps) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t s = 0; s < steps; ++s) {
    if constexpr (Parts == 1) {
      amx_load_a<Both>(a);
      amx_load_b(b);
      amx_products<Both>();
    } else { // parts (0, 2), (0, 1), (0, 0), (2, 0), (1, 0), (1, 1)
      amx_load_a<Both>(a);
      amx_load_b(b + 2 * amx_part);
      amx_products<Both>();
      amx_load_b(b + amx_part);
      amx_products<Both>();
      amx_load_b(b);
      amx_products<Both>();
      amx_load_a<Both>(a + 2 * amx_part);
      amx_products<Both>();
      amx_load_a<Both>(a + amx_part);
      amx_products<Both>();
      amx_load_b(b + amx_part);
      amx_products<Both>();
    }
    a += amx_step<Parts>;
    b += amx_step<Parts>;
  }
}

TROUPE_AMX inline void amx_put(float* c, std::int64_t stride) {
  const std::int64_t bytes = stride * static_cast<std::int64_t>(sizeof(float));
  _tile_stored(0, c, bytes);
  _tile_stored(1, c + amx_side, bytes);
  _tile_stored(2, c + amx_side * stride, bytes);
  _tile_stored(3, c + amx_side * stride + amx_side, bytes);
}

template <int Parts>
TROUPE_AMX void amx_multiply(const Tile& t, std::int64_t rows) {
  asm volatile("" ::: "memory"); // writes reach memory before the tile loads
  const std::int64_t steps = t.k / (amx_step<Parts> / amx_rows);
  if (rows > amx_side)
    amx_sum<Parts, true>(t.a, t.panel, steps);
  else
    amx_sum<Parts, false>(t.a, t.panel, steps);
  if (rows == amx_rows && !t.accumulate)
    return amx_put(t.c, t.c_stride);
  alignas(64) float sums[amx_rows * amx_cols];
  amx_put(sums, amx_cols);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < amx_cols; j += amx_side) {
      float* c = t.c + i * t.c_stride + j;
      __m512 x = _mm512_load_ps(sums + i * amx_cols + j);
      if (t.accumulate)
        x = _mm512_add_ps(_mm512_loadu_ps(c), x);
      _mm512_storeu_ps(c, x);
    }
}

template <int Parts>
Kernels amx_kernels(const char* name) {
  return {name,
          amx_rows,
          amx_cols,
          amx_depth,
          amx_step<Parts> / amx_rows,
          &amx_multiply<Parts>,
          &amx_pack_transposed<Parts>,
          &amx_pack_rows<Parts>,
          &amx_pack_along<Parts>,
          &amx_pack_across<Parts>,
          &amx_enter,
          &amx_leave,
          amx_max_depth / Parts,
          amx_block_floats};
}

#undef TROUPE_AMX
#undef TROUPE_AMX_PACK

} // namespace

bool has_tiles() noexcept {
  static const bool has = [] {
    constexpr long request_permission = 0x1023; // ARCH_REQ_XCOMP_PERM
    constexpr long tile_data = 18;              // XFEATURE_XTILEDATA
    return __builtin_cpu_supports("amx-tile") != 0
           && __builtin_cpu_supports("amx-bf16") != 0
           && __builtin_cpu_supports("avx512bf16") != 0
           && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return has;
}

const Kernels& amx_bf16_kernels() {
  static const Kernels kernels = amx_kernels<1>("amx_bf16");
  return kernels;
}

const Kernels& amx_parts_kernels() {
  static const Kernels kernels = amx_kernels<3>("amx_bf16 in three parts");
  return kernels;
}

} // namespace troupe::models::gemm_detail
