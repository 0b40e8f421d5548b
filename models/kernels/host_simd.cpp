#include "models/kernels/host_simd.hpp"

namespace troupe::models {

Isa host_isa() noexcept {
  static const Isa isa = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl"))
      return Isa::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      return Isa::avx2;
    return Isa::plain;
  }();
  return isa;
}

} // namespace troupe::models
