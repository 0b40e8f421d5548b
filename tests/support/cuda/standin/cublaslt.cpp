// cuBLASLt for the stand-in of CUDA's runtime: cublasLtMatmul computes on the
// host when its stream runs, with a bias or without. Other epilogues are
// refused.
#include "product.hpp"
#include <cublasLt.h>

#include <cstring>
#include <map>
#include <vector>

using namespace troupe::standin;

namespace {

/// The attributes of a description, of a layout or of preferences, by number.
/// A description is only a handle in the header's eyes.
struct Attributes {
  cudaDataType type = CUDA_R_32F;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
  std::map<int, std::vector<char>> values;

  template <class T>
  T get(int attribute, T otherwise) const {
    const auto found = values.find(attribute);
    if (found != values.end())
      std::memcpy(&otherwise, found->second.data(), sizeof otherwise);
    return otherwise;
  }
};

template <class Handle>
Attributes& of(Handle handle) {
  return *reinterpret_cast<Attributes*>(handle);
}
template <class Handle>
const Attributes& of_const(Handle handle) {
  return *reinterpret_cast<const Attributes*>(handle);
}

template <class Handle>
cublasStatus_t make(Handle* made, const Attributes& attributes) {
  *made = reinterpret_cast<Handle>(new Attributes(attributes));
  return CUBLAS_STATUS_SUCCESS;
}
template <class Handle>
cublasStatus_t drop(Handle handle) {
  delete &of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Handle>
cublasStatus_t set(Handle handle, int attribute, const void* value,
                   std::size_t size_bytes) {
  const auto* bytes = static_cast<const char*>(value);
  of(handle).values[attribute] = {bytes, bytes + size_bytes};
  return CUBLAS_STATUS_SUCCESS;
}

Matrix matrix_of(const void* data, cublasLtMatrixLayout_t layout,
                 bool is_transposed) {
  const Attributes& about = of_const(layout);
  return {
    data, about.type, is_transposed, about.stride,
    about.get<std::int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0)};
}

} // namespace

extern "C" {

size_t cublasLtGetVersion() {
  return 130100;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made,
                                        cublasComputeType_t,
                                        cudaDataType_t type) {
  return make(made, {type, 0, 0, 0, {}});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return drop(desc);
}
cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t attribute,
                               const void* value, size_t size_bytes) {
  return set(desc, attribute, value, size_bytes);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t stride) {
  return make(made, {type,
                     static_cast<std::int64_t>(rows),
                     static_cast<std::int64_t>(columns),
                     stride,
                     {}});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return drop(layout);
}
cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 const void* value, size_t size_bytes) {
  return set(layout, attribute, value, size_bytes);
}
cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return make(made, {});
}
cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return drop(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
  cublasLtMatmulPreference_t preference,
  cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
  size_t size_bytes) {
  return set(preference, attribute, value, size_bytes);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
  cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
  cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
  cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t found[],
  int* count) {
  found[0] = {};
  found[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                              const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout,
                              void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t*, void*, size_t,
                              cudaStream_t stream) {
  const Attributes& about = of_const(desc);
  const auto epilogue
    = about.get(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT
      && epilogue != CUBLASLT_EPILOGUE_BIAS)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool a_turned
    = about.get(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) != CUBLAS_OP_N;
  const bool b_turned
    = about.get(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) != CUBLAS_OP_N;
  Product product;
  product.m = of_const(d_layout).rows;
  product.n = of_const(d_layout).columns;
  product.k = a_turned ? of_const(a_layout).rows : of_const(a_layout).columns;
  product.count = of_const(d_layout).get<std::int32_t>(
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1);
  product.alpha = element(alpha, about.type, 0);
  product.beta = element(beta, about.type, 0);
  product.a = matrix_of(a, a_layout, a_turned);
  product.b = matrix_of(b, b_layout, b_turned);
  product.c = matrix_of(c, c_layout, false);
  product.d = matrix_of(d, d_layout, false);
  if (epilogue == CUBLASLT_EPILOGUE_BIAS)
    product.bias_m
      = about.get<const void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr);
  return enqueue_product(stream, "cublasLtMatmul", product);
}
}
