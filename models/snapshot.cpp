#include "models/snapshot.hpp"

#include "config/error.hpp"
#include "models/hf_folder.hpp"
#include "models/parameters.hpp"
#include "models/safetensors.hpp"

#include <cstring>
#include <utility>

namespace troupe::models {

namespace {

std::vector<std::int64_t> snapshot_shape(const ParameterShape& shape) {
  if (shape.vector)
    return {shape.rows};
  return {shape.rows, shape.cols};
}

void snapshot_copy(const Parameters& parameters, Plane plane,
                   AlignedFloats& target) {
  const auto source = parameters.plane(plane);
  std::memcpy(target.reserve(parameters.size()), source.data(),
              source.size_bytes());
}

} // namespace

void Snapshot::fill(const Source& source, bool with_moments) {
  shape_ = source.shape;
  folder_ = source.folder;
  shapes_ = source.parameters.shapes();
  offsets_.clear();
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    offsets_.push_back(source.parameters.offset(i));
  snapshot_copy(source.parameters, Plane::weight, weight_);
  has_moments_ = with_moments;
  if (with_moments) {
    snapshot_copy(source.parameters, Plane::m, m_);
    snapshot_copy(source.parameters, Plane::v, v_);
  }
  optimizer_steps_ = source.optimizer_steps;
  applied_steps_ = source.applied_steps;
}

std::span<const std::byte> Snapshot::bytes(const AlignedFloats& plane,
                                           std::size_t index) const {
  return std::as_bytes(std::span<const float>(
    plane.data() + offsets_[index],
    static_cast<std::size_t>(shapes_[index].num_elements())));
}

void Snapshot::save_hf(const std::filesystem::path& folder,
                       const HfStore& store) const {
  std::vector<TensorToStore> tensors;
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    tensors.push_back({shapes_[i].name, snapshot_shape(shapes_[i]), DType::f32,
                       store.dtype, bytes(weight_, i)});
  HfFolderOptions options;
  options.store.max_shard_bytes = store.max_shard_bytes;
  options.stored = store.dtype;
  options.source = store.files_from.empty() ? folder_ : store.files_from;
  save_hf_folder(folder, shape_, std::move(tensors), options);
}

void Snapshot::save_state(const std::filesystem::path& file,
                          bool with_weights) const {
  TROUPE_CHECK(has_moments_, "an untrained role has no state");
  std::vector<std::pair<std::string, const AlignedFloats*>> planes
    = {{"m.", &m_}, {"v.", &v_}};
  if (with_weights)
    planes.emplace_back("w.", &weight_);
  std::vector<TensorToStore> tensors;
  for (const auto& [prefix, plane] : planes)
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      tensors.push_back({prefix + shapes_[i].name, snapshot_shape(shapes_[i]),
                         DType::f32, DType::f32, bytes(*plane, i)});
  StoreOptions options;
  options.metadata = {{"optimizer_steps", std::to_string(optimizer_steps_)},
                      {"applied_steps", std::to_string(applied_steps_)}};
  write_safetensors(file, tensors, options);
}

} // namespace troupe::models
