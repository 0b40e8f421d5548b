// Numbers of a device as ATen's tensors, for all kernels of aten_backend.hpp:
// views of the memory that pointers name, and numbers of the host.
#pragma once

#include "models/gpu/aten_options.hpp"
#include "models/gpu/device_tables.hpp"
#include "models/kernels/backend.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

namespace troupe::models {

class AtenViews : public Backend {
public:
  /// Also on the CPU, so that it gets the calls of a GPU in their order.
  bool is_asynchronous() const override {
    return true;
  }
  std::unique_ptr<PendingRead> read_later(const float* from,
                                          std::int64_t count) override;

protected:
  AtenViews(at::Device device, const AtenOptions& options)
    : device_(device),
      options_(options) {}

  /// Returns numbers of the device as a tensor of their type; contiguous unless
  /// strides are given.
  at::Tensor view(ConstTypedPtr data, at::IntArrayRef sizes,
                  at::OptionalIntArrayRef strides = std::nullopt) const;
  /// Returns numbers in fp32: a view of those that are.
  at::Tensor wide(ConstTypedPtr data, at::IntArrayRef sizes,
                  at::OptionalIntArrayRef strides = std::nullopt) const;
  /// Returns host numbers as a tensor on the device.
  at::Tensor indices(std::span<const std::int64_t> values) const;

  at::Device device_;
  AtenOptions options_;
  mutable DeviceTables tables_;
};

} // namespace troupe::models
