// A libtorch device as all kernels of aten_backend.hpp use it: its equipment,
// and numbers as ATen's tensors, which are views of the memory that pointers
// name, or copies of the host's.
#pragma once

#include "models/gpu/aten_options.hpp"
#include "models/gpu/device_tables.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace troupe::models {

class AtenViews {
public:
  AtenViews(at::Device device, const AtenOptions& options)
    : device_(device),
      options_(options) {}

  at::Device device() const {
    return device_;
  }
  const AtenOptions& options() const {
    return options_;
  }
  /// Returns numbers of the device as a tensor of their type; contiguous unless
  /// strides are given.
  at::Tensor view(ConstTypedPtr data, at::IntArrayRef sizes,
                  at::OptionalIntArrayRef strides = std::nullopt) const;
  /// Returns numbers in fp32: a view of those that are.
  at::Tensor wide(ConstTypedPtr data, at::IntArrayRef sizes,
                  at::OptionalIntArrayRef strides = std::nullopt) const;
  /// Returns integers of the device.
  at::Tensor view_of_ints(const std::int32_t* data, at::IntArrayRef sizes,
                          at::OptionalIntArrayRef strides = std::nullopt) const;
  /// Returns host numbers as a tensor on the device.
  at::Tensor indices(std::span<const std::int64_t> values) const;
  /// Returns host numbers that other kernels of the pass also read; those are
  /// copied once.
  template <class Numbers>
  at::Tensor cached(const Numbers& values) const {
    return tables_.of(values, device_);
  }

protected:
  at::Device device_;
  AtenOptions options_;

private:
  mutable DeviceTables tables_;
};

} // namespace troupe::models
