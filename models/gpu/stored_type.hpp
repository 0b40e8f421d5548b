// From types and activations that programs know when they run to those of a
// kernel's template.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/activations.hpp"
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

/// Calls f with the types of rows that are added and added to; returns false if
/// the kernel has none for them.
template <class F>
bool with_rows(DType from, DType to, const F& f) {
  if (from == DType::f32 && to == DType::f32)
    f(Stored<float>{}, Stored<float>{});
  else if (from == DType::bf16 && to == DType::f32)
    f(Stored<Bf16>{}, Stored<float>{});
  else if (from == DType::bf16 && to == DType::bf16)
    f(Stored<Bf16>{}, Stored<Bf16>{});
  else
    return false;
  return true;
}

/// Calls f with the activation as a kernel takes it.
template <class F>
void with_unit(Activation activation, F f) {
  switch (activation) {
  case Activation::silu:
    return f(Silu{});
  case Activation::gelu:
    return f(Gelu{});
  case Activation::gelu_tanh:
    return f(GeluTanh{});
  }
}

} // namespace troupe::models::gpu
