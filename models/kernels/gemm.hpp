// Our own fp32 matrix products on the CPU: C = A B (+ C) (+ bias), with any
// strides, so that a transpose costs only a packing pass.
//
// Why not at::mm: on AMD processors MKL's fp32 runs on AVX2 kernels (half the
// rate of AVX-512 there), and oneDNN inside libtorch cannot add into C and
// chooses kernels by shape. Here every element of C is the sum over k in one
// fixed order, for any M, N, thread count or position of the row in a batch: a
// token's numbers do not depend on its neighbours (I1, I8).
//
// With bf16 operands, A and B are rounded while they are packed; sums and C
// stay fp32. Where the processor multiplies bf16 tiles many times faster than
// fp32 numbers, fp32 operands can be split into three bf16 parts: as exact as
// fp32 sums, in another order (gemm_amx.cpp).
#pragma once

#include "config/base/dtype.hpp"
#include "models/kernels/aligned_floats.hpp"

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

/// C, row-major with `stride` floats between rows.
struct MutableMatrix {
  float* data = nullptr;
  std::int64_t stride = 0;
};

struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// Use of C's old content, a row [N] to add, and the operand type.
struct GemmOptions {
  bool accumulate = false;
  const float* bias = nullptr;
  DType operands = DType::f32; ///< or bf16
  bool parts = false; ///< split fp32 operands into parts if that is faster here
};

/// Computes C[M,N] = A[M,K] B[K,N] with compute_threads() threads. One stride
/// of A must be 1, and one of B.
void gemm(const GemmShape& shape, const ConstMatrix& a, const ConstMatrix& b,
          const MutableMatrix& c, const GemmOptions& options = {});
/// Computes the same in the calling thread alone (inside parallel regions).
void gemm_serial(const GemmShape& shape, const ConstMatrix& a,
                 const ConstMatrix& b, const MutableMatrix& c,
                 const GemmOptions& options = {});

/// B [K, N], packed once in the order in which the kernel reads it: for weights
/// that serve many small products (decoding).
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
  AlignedFloats floats_{nullptr}; ///< system memory, counted for the device
};

/// Computes C[M, b.n] = A[M, b.k] B with the same bits as `gemm` with these
/// operands.
void gemm(std::int64_t m, const ConstMatrix& a, const PackedMatrix& b,
          const MutableMatrix& c, const GemmOptions& options = {});

/// Returns the name of this machine's kernel: "avx512", "amx_bf16", "plain",
/// ...
const char* gemm_kernel_name(DType operands = DType::f32);

} // namespace troupe::models
