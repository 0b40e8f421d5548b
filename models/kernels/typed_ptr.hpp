// Pointers to numbers in a device's memory, with their element type: fp32, or
// bf16 for weights, activations and cached keys and values. Arithmetic counts
// elements. Sums, statistics, gradients of weights and optimizer states are
// always fp32 and stay `float*`, which converts to these implicitly.
#pragma once

#include "config/base/dtype.hpp"
#include "config/base/error.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::models {

class ConstTypedPtr {
public:
  ConstTypedPtr() = default;
  ConstTypedPtr(std::nullptr_t) {}
  ConstTypedPtr(const float* data) : data_(data) {}
  ConstTypedPtr(const void* data, DType type) : data_(data), type_(type) {}

  const void* data() const {
    return data_;
  }
  DType type() const {
    return type_;
  }
  /// Returns the address of fp32 numbers. Throws InvariantError for others.
  const float* floats() const {
    TROUPE_CHECK(type_ == DType::f32, "these numbers are stored in fp32");
    return static_cast<const float*>(data_);
  }
  explicit operator bool() const {
    return data_ != nullptr;
  }
  ConstTypedPtr operator+(std::int64_t elements) const {
    return {static_cast<const std::byte*>(data_)
              + elements * static_cast<std::int64_t>(size_bytes(type_)),
            type_};
  }
  bool operator==(const ConstTypedPtr&) const = default;

private:
  const void* data_ = nullptr;
  DType type_ = DType::f32;
};

class TypedPtr {
public:
  TypedPtr() = default;
  TypedPtr(std::nullptr_t) {}
  TypedPtr(float* data) : data_(data) {}
  TypedPtr(void* data, DType type) : data_(data), type_(type) {}

  void* data() const {
    return data_;
  }
  DType type() const {
    return type_;
  }
  /// Returns the address of fp32 numbers. Throws InvariantError for others.
  float* floats() const {
    TROUPE_CHECK(type_ == DType::f32, "these numbers are stored in fp32");
    return static_cast<float*>(data_);
  }
  explicit operator bool() const {
    return data_ != nullptr;
  }
  operator ConstTypedPtr() const {
    return {data_, type_};
  }
  TypedPtr operator+(std::int64_t elements) const {
    return {static_cast<std::byte*>(data_)
              + elements * static_cast<std::int64_t>(size_bytes(type_)),
            type_};
  }
  bool operator==(const TypedPtr&) const = default;

private:
  void* data_ = nullptr;
  DType type_ = DType::f32;
};

/// A strided view: element (i, j) at i * row_stride + j * col_stride.
struct ConstTypedMatrix {
  ConstTypedPtr data;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;
};

/// A row-major matrix with `stride` elements between rows.
struct TypedMatrix {
  TypedPtr data;
  std::int64_t stride = 0;
};

/// Rows of two matrices, with the elements from one row to the next.
struct TypedRowPair {
  ConstTypedPtr a;
  ConstTypedPtr b;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
};

} // namespace troupe::models
