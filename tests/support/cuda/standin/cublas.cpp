// cuBLAS for the stand-in of CUDA's runtime: products of real numbers are
// computed on the host when their stream runs; the rest is refused by name
// (cublas_refused.cpp).
#include "product.hpp"
#include "standin.hpp"

using namespace troupe::standin;

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

namespace {

/// A factor in the type of the sums. One in memory of a GPU would have to be
/// read when the stream runs: nobody asks for that.
double factor(const void* value, cudaDataType type) {
  return element(value, type, 0);
}

cudaDataType type_of_sums(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
}

bool turned(cublasOperation_t operation) {
  return operation != CUBLAS_OP_N;
}

/// y = alpha op(A) x + beta y, as a product with one column.
template <class T>
cublasStatus_t gemv(cublasHandle_t handle, const char* name,
                    cublasOperation_t operation, int m, int n, const T* alpha,
                    const T* a, int lda, const T* x, int incx, const T* beta,
                    T* y, int incy) {
  constexpr auto type = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
  if (handle->pointers != CUBLAS_POINTER_MODE_HOST)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  Product product;
  // The result is one row, so that a distance between elements is a stride.
  product.m = 1;
  product.n = turned(operation) ? n : m;
  product.k = turned(operation) ? m : n;
  product.alpha = *alpha;
  product.beta = *beta;
  product.a = {x, type, false, incx, 0};
  product.b = {a, type, !turned(operation), lda, 0};
  product.c = product.d = {y, type, false, incy, 0};
  return enqueue_product(handle->stream, name, product);
}

template <class T>
cublasStatus_t dot(cublasHandle_t handle, const char* name, int n, const T* x,
                   int incx, const T* y, int incy, T* result) {
  constexpr auto type = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
  Product product;
  product.m = product.n = 1;
  product.k = n;
  product.a = {x, type, false, incx, 0};
  product.b = {y, type, true, incy, 0};
  product.c = product.d = {result, type, false, 1, 0};
  const auto status = enqueue_product(handle->stream, name, product);
  if (handle->pointers == CUBLAS_POINTER_MODE_HOST)
    cudaStreamSynchronize(handle->stream);
  return status;
}

template <class T>
cublasStatus_t gemm(cublasHandle_t handle, const char* name,
                    cublasOperation_t a_turned, cublasOperation_t b_turned,
                    int m, int n, int k, const T* alpha, Matrix a, Matrix b,
                    const T* beta, Matrix c, int count) {
  if (handle->pointers != CUBLAS_POINTER_MODE_HOST)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  a.is_transposed = turned(a_turned);
  b.is_transposed = turned(b_turned);
  const Product product{m, n, k, count, *alpha, *beta, a, b, c, c};
  return enqueue_product(handle->stream, name, product);
}

} // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* made) {
  *made = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle,
                                       cublasPointerMode_t mode) {
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle,
                                       cublasPointerMode_t* mode) {
  *mode = handle->pointers;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(
  cublasHandle_t handle, cublasOperation_t a_turned, cublasOperation_t b_turned,
  int m, int n, int k, const void* alpha, const void* a, cudaDataType a_type,
  int lda, long long a_distance, const void* b, cudaDataType b_type, int ldb,
  long long b_distance, const void* beta, void* c, cudaDataType c_type, int ldc,
  long long c_distance, int count, cublasComputeType_t compute,
  cublasGemmAlgo_t) {
  const double factors[]{factor(alpha, type_of_sums(compute)),
                         factor(beta, type_of_sums(compute))};
  return gemm(handle, "cublasGemmStridedBatchedEx", a_turned, b_turned, m, n, k,
              &factors[0], {a, a_type, false, lda, a_distance},
              {b, b_type, false, ldb, b_distance}, &factors[1],
              {c, c_type, false, ldc, c_distance}, count);
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_turned,
                            cublasOperation_t b_turned, int m, int n, int k,
                            const void* alpha, const void* a,
                            cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta,
                            void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  const double factors[]{factor(alpha, type_of_sums(compute)),
                         factor(beta, type_of_sums(compute))};
  return gemm(handle, "cublasGemmEx", a_turned, b_turned, m, n, k, &factors[0],
              {a, a_type, false, lda, 0}, {b, b_type, false, ldb, 0},
              &factors[1], {c, c_type, false, ldc, 0}, 1);
}
cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t a_turned,
                             cublasOperation_t b_turned, int m, int n, int k,
                             const float* alpha, const void* a,
                             cudaDataType a_type, int lda, const void* b,
                             cudaDataType b_type, int ldb, const float* beta,
                             void* c, cudaDataType c_type, int ldc) {
  return gemm(handle, "cublasSgemmEx", a_turned, b_turned, m, n, k, alpha,
              {a, a_type, false, lda, 0}, {b, b_type, false, ldb, 0}, beta,
              {c, c_type, false, ldc, 0}, 1);
}

#define TROUPE_GEMM(letter, T, type)                                           \
  cublasStatus_t cublas##letter##gemm_v2(                                      \
    cublasHandle_t handle, cublasOperation_t a_turned,                         \
    cublasOperation_t b_turned, int m, int n, int k, const T* alpha,           \
    const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {  \
    return gemm(handle, "cublas" #letter "gemm", a_turned, b_turned, m, n, k,  \
                alpha, {a, type, false, lda, 0}, {b, type, false, ldb, 0},     \
                beta, {c, type, false, ldc, 0}, 1);                            \
  }                                                                            \
  cublasStatus_t cublas##letter##gemmStridedBatched(                           \
    cublasHandle_t handle, cublasOperation_t a_turned,                         \
    cublasOperation_t b_turned, int m, int n, int k, const T* alpha,           \
    const T* a, int lda, long long a_distance, const T* b, int ldb,            \
    long long b_distance, const T* beta, T* c, int ldc, long long c_distance,  \
    int count) {                                                               \
    return gemm(handle, "cublas" #letter "gemmStridedBatched", a_turned,       \
                b_turned, m, n, k, alpha, {a, type, false, lda, a_distance},   \
                {b, type, false, ldb, b_distance}, beta,                       \
                {c, type, false, ldc, c_distance}, count);                     \
  }                                                                            \
  cublasStatus_t cublas##letter##gemv_v2(                                      \
    cublasHandle_t handle, cublasOperation_t operation, int m, int n,          \
    const T* alpha, const T* a, int lda, const T* x, int incx, const T* beta,  \
    T* y, int incy) {                                                          \
    return gemv(handle, "cublas" #letter "gemv", operation, m, n, alpha, a,    \
                lda, x, incx, beta, y, incy);                                  \
  }                                                                            \
  cublasStatus_t cublas##letter##dot_v2(cublasHandle_t handle, int n,          \
                                        const T* x, int incx, const T* y,      \
                                        int incy, T* result) {                 \
    return dot(handle, "cublas" #letter "dot", n, x, incx, y, incy, result);   \
  }

TROUPE_GEMM(S, float, CUDA_R_32F)
TROUPE_GEMM(D, double, CUDA_R_64F)
}
