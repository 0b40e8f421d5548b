// From a typed pointer to the type of a kernel's template.
#pragma once

#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/typed_ptr.hpp"

namespace troupe::models::gpu {

/// A type as a value.
template <class T>
struct Stored {
  using type = T;

  static T* at(TypedPtr data) {
    TROUPE_CHECK(data.type() == (sizeof(T) == 4 ? DType::f32 : DType::bf16),
                 "all numbers of a kernel are stored in one type");
    return static_cast<T*>(data.data());
  }
  static const T* at(ConstTypedPtr data) {
    return at(TypedPtr{const_cast<void*>(data.data()), data.type()});
  }
  /// Returns null for null, whatever type that has.
  static const T* or_null(ConstTypedPtr data) {
    return data ? at(data) : nullptr;
  }
};

/// Calls f(Stored<T>{}) with the type that numbers are stored in.
template <class F>
void with_stored(DType type, F f) {
  type == DType::bf16 ? f(Stored<Bf16>{}) : f(Stored<float>{});
}

} // namespace troupe::models::gpu
