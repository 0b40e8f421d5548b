#include "models/gpu/aten_views.hpp"

#include "models/gpu/aten_parts.hpp"
#include "models/gpu/upload.hpp"
#include "models/kernels/typed_tensor.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

at::Tensor view_of(const void* data, at::ScalarType type, at::Device device,
                   at::IntArrayRef sizes, at::OptionalIntArrayRef strides) {
  return at::for_blob(const_cast<void*>(data), sizes)
    .strides(strides)
    .options(at::TensorOptions(type).device(device))
    .target_device(device)
    .make_tensor();
}

} // namespace

at::Tensor AtenViews::view(ConstTypedPtr data, at::IntArrayRef sizes,
                           at::OptionalIntArrayRef strides) const {
  return view_of(data.data(), scalar_type(data.type()), device_, sizes,
                 strides);
}

at::Tensor AtenViews::wide(ConstTypedPtr data, at::IntArrayRef sizes,
                           at::OptionalIntArrayRef strides) const {
  return view(data, sizes, strides).to(at::kFloat);
}

at::Tensor AtenViews::view_of_ints(const std::int32_t* data,
                                   at::IntArrayRef sizes,
                                   at::OptionalIntArrayRef strides) const {
  return view_of(data, at::kInt, device_, sizes, strides);
}

at::Tensor on_device(std::span<const std::int64_t> values, at::Device device) {
  return upload(std::as_bytes(values), at::kLong, device);
}

at::Tensor AtenViews::indices(std::span<const std::int64_t> values) const {
  return on_device(values, device_);
}

} // namespace troupe::models
