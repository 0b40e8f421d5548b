#include "models/gpu/aten_views.hpp"

#include "models/gpu/aten_parts.hpp"
#include "models/gpu/upload.hpp"
#include "models/kernels/typed_tensor.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

at::Tensor AtenViews::view(ConstTypedPtr data, at::IntArrayRef sizes,
                           at::OptionalIntArrayRef strides) const {
  return at::for_blob(const_cast<void*>(data.data()), sizes)
    .strides(strides)
    .options(at::TensorOptions(scalar_type(data.type())).device(device_))
    .target_device(device_)
    .make_tensor();
}

at::Tensor AtenViews::wide(ConstTypedPtr data, at::IntArrayRef sizes,
                           at::OptionalIntArrayRef strides) const {
  return view(data, sizes, strides).to(at::kFloat);
}

at::Tensor on_device(std::span<const std::int64_t> values, at::Device device) {
  return upload(std::as_bytes(values), at::kLong, device);
}

at::Tensor AtenViews::indices(std::span<const std::int64_t> values) const {
  return on_device(values, device_);
}

} // namespace troupe::models
