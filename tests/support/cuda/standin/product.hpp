// The host's product for the stand-ins of cuBLAS and cuBLASLt: what the real
// ones are asked to compute, by plain loops, in the order of the index. Sums
// are fp32, or fp64 for fp64.
#pragma once

#include <cublas_v2.h>

#include <cstdint>

namespace troupe::standin {

/// A matrix by columns, or several at a distance.
struct Matrix {
  const void* data = nullptr;
  cudaDataType type = CUDA_R_32F;
  bool is_transposed = false;
  std::int64_t stride = 0;   ///< elements from a column to the next
  std::int64_t distance = 0; ///< elements from a matrix to the next
};

/// C = alpha A B + beta C, for `count` matrices each. C is [m, n], and A's
/// columns or rows are k long.
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t count = 1;
  double alpha = 1;
  double beta = 0;
  Matrix a;
  Matrix b;
  Matrix c;                     ///< what beta multiplies; may be `d`
  Matrix d;                     ///< the result
  const void* bias_m = nullptr; ///< of D's type; null: none
};

/// Returns whether all types are among fp32, fp64, bf16 and fp16.
bool can_multiply(const Product& product);
/// Puts the product at the stream's end, counted under the name.
cublasStatus_t enqueue_product(cudaStream_t stream, const char* name,
                               const Product& product);

/// Reads and writes an element.
double element(const void* data, cudaDataType type, std::int64_t at);
void set_element(void* data, cudaDataType type, std::int64_t at, double value);

} // namespace troupe::standin
