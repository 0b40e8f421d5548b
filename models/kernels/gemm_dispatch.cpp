// Chooses the matrix-product kernels for this machine and operand type.
#include "config/base/error.hpp"
#include "models/kernels/gemm_kernels.hpp"
#include "models/kernels/host_simd.hpp"

namespace troupe::models::gemm_detail {

const Kernels& fp32_kernels() {
  switch (host_isa()) {
  case Isa::avx512:
    return avx512_kernels();
  case Isa::avx2:
    return avx2_kernels();
  case Isa::plain:
    break;
  }
  return plain_kernels();
}

const Kernels& best_kernels(DType operands) {
  static const bool has_bf16
    = host_isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16") != 0;
  if (operands == DType::f32)
    return fp32_kernels();
  TROUPE_CHECK(operands == DType::bf16, "products are in fp32 or bf16");
  if (has_tiles())
    return amx_bf16_kernels();
  return has_bf16 ? avx512_bf16_kernels() : rounding_kernels();
}

} // namespace troupe::models::gemm_detail
