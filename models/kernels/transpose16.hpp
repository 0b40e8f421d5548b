// Transposes 16 rows of 16 32-bit lanes in registers by perfect shuffles. For
// sources that compile for AVX-512 function by function.
#pragma once

#include <immintrin.h>

namespace troupe::models::gemm_detail {

__attribute__((target("avx512f"), always_inline)) inline void
transpose16(__m512* r) {
  const __m512i low
    = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i high = _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11,
                                        26, 10, 25, 9, 24, 8);
  __m512 s[16];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 8; ++i) {
      s[2 * i] = _mm512_permutex2var_ps(r[i], low, r[i + 8]);
      s[2 * i + 1] = _mm512_permutex2var_ps(r[i], high, r[i + 8]);
    }
    for (int i = 0; i < 8; ++i) {
      r[2 * i] = _mm512_permutex2var_ps(s[i], low, s[i + 8]);
      r[2 * i + 1] = _mm512_permutex2var_ps(s[i], high, s[i + 8]);
    }
  }
}

} // namespace troupe::models::gemm_detail
