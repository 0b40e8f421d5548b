// Typed pointers to the numbers of tensors, which are views of device memory.
#pragma once

#include "models/kernels/typed_ptr.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::models {

/// Returns where a tensor's fp32 or bf16 numbers are; null if it is undefined.
/// Throws InvariantError for other types.
inline ConstTypedPtr numbers_of(const at::Tensor& tensor) {
  if (!tensor.defined())
    return {};
  TROUPE_CHECK(tensor.scalar_type() == at::kFloat
                 || tensor.scalar_type() == at::kBFloat16,
               "parameters are stored in fp32 or bf16");
  return {tensor.const_data_ptr(),
          tensor.scalar_type() == at::kFloat ? DType::f32 : DType::bf16};
}

/// Returns ATen's name of an element type.
inline at::ScalarType scalar_type(DType type) {
  TROUPE_CHECK(type == DType::f32 || type == DType::bf16,
               "kernels compute on fp32 or bf16");
  return type == DType::f32 ? at::kFloat : at::kBFloat16;
}

} // namespace troupe::models
