#include "product.hpp"

#include "standin.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace troupe::standin {

namespace {

std::size_t bytes_of(cudaDataType type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// Rounds to the nearest, ties to even.
std::uint16_t to_bf16(float value) {
  if (std::isnan(value))
    return 0x7fc0;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

Range range_of(const Matrix& matrix, std::int64_t rows, std::int64_t columns,
               std::int64_t count) {
  if (matrix.is_transposed)
    std::swap(rows, columns);
  if (rows == 0 || columns == 0)
    return {};
  const std::int64_t elements
    = (count - 1) * matrix.distance + (columns - 1) * matrix.stride + rows;
  return {matrix.data,
          static_cast<std::size_t>(elements) * bytes_of(matrix.type)};
}

/// One matrix as a table of numbers by rows.
std::vector<double> table_of(const Matrix& matrix, std::int64_t rows,
                             std::int64_t columns, std::int64_t index) {
  std::vector<double> table(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t at = index * matrix.distance
                              + (matrix.is_transposed ? i * matrix.stride + j
                                                      : j * matrix.stride + i);
      table[static_cast<std::size_t>(i * columns + j)]
        = element(matrix.data, matrix.type, at);
    }
  return table;
}

/// Sums in double: an order of fp32 sums would be none of cuBLAS's.
void multiply_one(const Product& p, std::int64_t index) {
  const std::vector<double> a = table_of(p.a, p.m, p.k, index);
  const std::vector<double> b = table_of(p.b, p.k, p.n, index);
  std::vector<double> row(static_cast<std::size_t>(p.n));
  for (std::int64_t i = 0; i < p.m; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::int64_t l = 0; l < p.k; ++l) {
      const double factor = a[static_cast<std::size_t>(i * p.k + l)];
      const double* from = b.data() + l * p.n;
      for (std::size_t j = 0; j < row.size(); ++j)
        row[j] += factor * from[j];
    }
    for (std::int64_t j = 0; j < p.n; ++j) {
      double value = p.alpha * row[static_cast<std::size_t>(j)];
      if (p.beta != 0)
        value += p.beta
                 * element(p.c.data, p.c.type,
                           index * p.c.distance + j * p.c.stride + i);
      if (p.bias_m != nullptr)
        value += element(p.bias_m, p.d.type, i);
      set_element(const_cast<void*>(p.d.data), p.d.type,
                  index * p.d.distance + j * p.d.stride + i, value);
    }
  }
}

bool is_known(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16BF
         || type == CUDA_R_16F;
}

} // namespace

double element(const void* data, cudaDataType type, std::int64_t at) {
  switch (type) {
  case CUDA_R_64F:
    return static_cast<const double*>(data)[at];
  case CUDA_R_16BF:
    return from_bf16(static_cast<const std::uint16_t*>(data)[at]);
  case CUDA_R_16F:
    return static_cast<const _Float16*>(data)[at];
  default:
    return static_cast<const float*>(data)[at];
  }
}

void set_element(void* data, cudaDataType type, std::int64_t at, double value) {
  switch (type) {
  case CUDA_R_64F:
    static_cast<double*>(data)[at] = value;
    return;
  case CUDA_R_16BF:
    static_cast<std::uint16_t*>(data)[at] = to_bf16(static_cast<float>(value));
    return;
  case CUDA_R_16F:
    static_cast<_Float16*>(data)[at] = static_cast<_Float16>(value);
    return;
  default:
    static_cast<float*>(data)[at] = static_cast<float>(value);
  }
}

bool can_multiply(const Product& product) {
  return is_known(product.a.type) && is_known(product.b.type)
         && is_known(product.c.type) && is_known(product.d.type);
}

cublasStatus_t enqueue_product(cudaStream_t stream, const char* name,
                               const Product& product) {
  if (!can_multiply(product))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  count_launch(name);
  int device = 0;
  cudaGetDevice(&device);
  const Work work{name,
                  {range_of(product.a, product.m, product.k, product.count),
                   range_of(product.b, product.k, product.n, product.count),
                   range_of(product.d, product.m, product.n, product.count)},
                  [=] {
                    for (std::int64_t i = 0; i < product.count; ++i)
                      multiply_one(product, i);
                  }};
  return enqueue(stream, device, work) == cudaSuccess
           ? CUBLAS_STATUS_SUCCESS
           : CUBLAS_STATUS_EXECUTION_FAILED;
}

} // namespace troupe::standin
