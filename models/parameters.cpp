#include "models/parameters.hpp"

#include "config/error.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>

namespace troupe::models {

namespace {

constexpr std::int64_t parameters_grain = 16; // floats: 64 bytes

std::int64_t parameters_padded(std::int64_t elements) {
  return (elements + parameters_grain - 1) / parameters_grain
         * parameters_grain;
}

} // namespace

Parameters::Parameters(std::vector<ParameterShape> shapes, bool trainable)
  : Parameters(std::move(shapes), trainable, -1) {}

Parameters::Parameters(std::vector<ParameterShape> shapes, bool trainable,
                       std::int64_t moment_size)
  : shapes_(std::move(shapes)),
    trainable_(trainable) {
  offsets_.reserve(shapes_.size());
  for (const ParameterShape& shape : shapes_) {
    offsets_.push_back(size_);
    size_ += parameters_padded(shape.num_elements());
  }
  moment_size_ = moment_size < 0 ? size_ : moment_size;
  const std::size_t used = trainable_ ? num_planes : 1;
  for (std::size_t p = 0; p < used; ++p) {
    const std::int64_t floats = size_of(static_cast<Plane>(p));
    planes_[p].reserve(std::max<std::int64_t>(floats, 1));
    std::memset(planes_[p].data(), 0,
                static_cast<std::size_t>(floats) * sizeof(float));
  }
}

std::int64_t Parameters::find(std::string_view name) const {
  const auto found
    = std::find_if(shapes_.begin(), shapes_.end(),
                   [&](const ParameterShape& s) { return s.name == name; });
  return found == shapes_.end() ? -1 : found - shapes_.begin();
}

float* Parameters::start(Plane plane) const {
  float* data = planes_[static_cast<std::size_t>(plane)].data();
  TROUPE_CHECK(data != nullptr, "this model is not trained: no such plane");
  return data;
}

at::Tensor Parameters::view(std::size_t index, Plane plane) const {
  return fused_view(index, 1, plane);
}

at::Tensor Parameters::fused_view(std::size_t index, std::size_t count,
                                  Plane plane) const {
  const ParameterShape& first = shapes_[index];
  std::int64_t rows = 0;
  std::int64_t end = offsets_[index];
  for (std::size_t i = index; i < index + count; ++i) {
    const ParameterShape& shape = shapes_[i];
    if (offsets_[i] != end || shape.cols != first.cols
        || shape.vector != first.vector)
      return {};
    rows += shape.rows;
    end += shape.num_elements();
  }
  float* data = start(plane) + offsets_[index];
  if (first.vector)
    return at::from_blob(data, {rows}, at::kFloat);
  return at::from_blob(data, {rows, first.cols}, at::kFloat);
}

std::span<float> Parameters::plane(Plane plane) const {
  return {start(plane), static_cast<std::size_t>(size_of(plane))};
}

} // namespace troupe::models
