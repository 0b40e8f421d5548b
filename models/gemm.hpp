// Products of fp32 matrices on the CPU, our own: C = A B (+ C) (+ bias), any
// strides, so that transposes cost nothing but a packing pass.
//
// Why not at::mm: on AMD processors MKL's fp32 runs on AVX2 kernels (half the
// rate of AVX-512 there), oneDNN inside libtorch cannot add into C and chooses
// kernels by shape. Here every element of C is the sum over k in one fixed
// order, whatever M, N, the thread count or the place of the row in a batch:
// a token's numbers do not depend on its neighbours (I1, I8).
//
// With bf16 operands A and B are rounded while they are packed; sums and C stay
// fp32. Where the processor multiplies tiles of bf16 many times faster than
// fp32 numbers, fp32 operands can be taken in three bf16 parts: as exact as
// fp32 sums, in another order (gemm_amx.cpp).
#pragma once

#include "config/dtype.hpp"
#include "models/aligned_floats.hpp"

#include <cstdint>

namespace troupe::models {

/// A strided view: element (i, j) at data[i * row_stride + j * col_stride].
struct ConstMatrix {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;

  ConstMatrix transposed() const {
    return {data, col_stride, row_stride};
  }
};

/// C, row-major with `stride` between rows.
struct MutableMatrix {
  float* data = nullptr;
  std::int64_t stride = 0;
};

struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// What happens to C's old content, a row [N] to add, and what is multiplied.
struct GemmOptions {
  bool accumulate = false;
  const float* bias = nullptr;
  DType operands = DType::f32; ///< or bf16
  bool parts = false; ///< fp32 operands in parts, if that is faster here
};

/// C[M,N] = A[M,K] B[K,N]. One of A's strides must be 1, one of B's too.
/// Uses compute_threads() threads.
void gemm(const GemmShape& shape, const ConstMatrix& a, const ConstMatrix& b,
          const MutableMatrix& c, const GemmOptions& options = {});
/// The same in the calling thread alone (inside parallel regions).
void gemm_serial(const GemmShape& shape, const ConstMatrix& a,
                 const ConstMatrix& b, const MutableMatrix& c,
                 const GemmOptions& options = {});

/// B [K, N] once and for all in the order in which the kernel reads it: for
/// weights that serve many small products (decoding).
class PackedMatrix {
public:
  PackedMatrix() = default;
  PackedMatrix(const ConstMatrix& b, std::int64_t k, std::int64_t n,
               DType operands = DType::f32);
  std::int64_t k() const {
    return k_;
  }
  std::int64_t n() const {
    return n_;
  }
  DType operands() const {
    return operands_;
  }
  const float* data() const { ///< panels of 32-bit lanes
    return floats_.data();
  }

private:
  std::int64_t k_ = 0;
  std::int64_t n_ = 0;
  DType operands_ = DType::f32;
  AlignedFloats floats_{nullptr}; ///< a weight's: of the device
};

/// C[M, b.n] = A[M, b.k] B, bit for bit what `gemm` gives with its operands.
void gemm(std::int64_t m, const ConstMatrix& a, const PackedMatrix& b,
          const MutableMatrix& c, const GemmOptions& options = {});

/// "avx512", "amx_bf16", "plain", ...: the kernel of this machine.
const char* gemm_kernel_name(DType operands = DType::f32);

} // namespace troupe::models
